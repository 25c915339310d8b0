#include "runtime/text/SpecialTokens.h"

#include "runtime/text/PieceTable.h"

namespace lathe::runtime {

SpecialTokens::SpecialTokens(const TokenizerSpec &spec) {
  std::vector<TokenTrie::Entry> anywhere, trusted;
  for (int32_t id = 0; id < static_cast<int32_t>(spec.tokens.size()); ++id) {
    TokenType type = typeOf(spec, id);
    if (type == TokenType::UserDefined)
      anywhere.emplace_back(spec.tokens[id], id);
    else if (type == TokenType::Control || type == TokenType::Unknown)
      trusted.emplace_back(spec.tokens[id], id);
  }
  userDefined = TokenTrie(std::move(anywhere));
  control = TokenTrie(std::move(trusted));
}

std::vector<SpecialTokens::Fragment>
SpecialTokens::cut(std::string_view text,
                   std::span<const Range> trusted) const {
  std::vector<Fragment> fragments;
  size_t textBegin = 0;
  auto endText = [&](size_t end) {
    if (end > textBegin)
      fragments.push_back({{textBegin, end}, kNoToken});
  };
  for (size_t at = 0; at < text.size();) {
    while (!trusted.empty() && trusted.front().end <= at)
      trusted = trusted.subspan(1);
    size_t best = 0;
    int32_t bestId = kNoToken;
    auto offer = [&](size_t length, int32_t id) {
      if (length > best) {
        best = length;
        bestId = id;
      }
    };
    if (!userDefined.noneStartsWith(text[at]))
      userDefined.eachPrefix(text.substr(at), offer);
    if (!trusted.empty() && trusted.front().begin <= at &&
        !control.noneStartsWith(text[at]))
      control.eachPrefix(text.substr(at, trusted.front().end - at), offer);
    if (bestId == kNoToken) {
      ++at;
      continue;
    }
    endText(at);
    fragments.push_back({{at, at + best}, bestId});
    at += best;
    textBegin = at;
  }
  endText(text.size());
  return fragments;
}

std::optional<int32_t> SpecialTokens::find(std::string_view text) const {
  std::optional<int32_t> found;
  auto offer = [&](size_t length, int32_t id) {
    if (length == text.size())
      found = id;
  };
  userDefined.eachPrefix(text, offer);
  control.eachPrefix(text, offer);
  return found;
}

} // namespace lathe::runtime

#include "runtime/speculate/SameVocabulary.h"
#include "runtime/support/Quote.h"

#include <algorithm>

namespace lathe::runtime {

static const char *nameOf(TokenizerModel model) {
  switch (model) {
  case TokenizerModel::ByteLevelBpe:
    return "byte-level BPE";
  case TokenizerModel::SentencePieceBpe:
    return "SentencePiece BPE";
  case TokenizerModel::Unigram:
    return "unigram";
  }
  return "unknown";
}

static std::string idText(int32_t id) {
  return id == kNoToken ? "none" : std::to_string(id);
}

Result<std::string> checkSameVocabulary(const TokenizerSpec &target,
                                        const TokenizerSpec &draft) {
  if (target.model != draft.model)
    return fail(ErrorKind::InvalidInput,
                "the draft model's vocabulary is another one: {}, the model's "
                "is {}; choose a draft model of the same family",
                nameOf(draft.model), nameOf(target.model));
  auto [own, other] = std::mismatch(target.tokens.begin(), target.tokens.end(),
                                    draft.tokens.begin(), draft.tokens.end());
  if (own != target.tokens.end() && other != draft.tokens.end())
    return fail(ErrorKind::InvalidInput,
                "the draft model's vocabulary is another one: token {} is {}, "
                "the model's is {}; choose a draft model of the same family",
                own - target.tokens.begin(), quoted(*other), quoted(*own));
  std::string differing;
  auto compare = [&](const char *name, const std::string &targets,
                     const std::string &drafts) {
    if (targets != drafts)
      differing +=
          fmt::format("{}{} {} (the model's: {})",
                      differing.empty() ? "" : ", ", name, drafts, targets);
  };
  auto yesNo = [](bool value) { return value ? "yes" : "no"; };
  compare("begin token", idText(target.bosId), idText(draft.bosId));
  compare("end token", idText(target.eosId), idText(draft.eosId));
  compare("adds a begin token:", yesNo(target.addBos), yesNo(draft.addBos));
  compare("adds an end token:", yesNo(target.addEos), yesNo(draft.addEos));
  if (differing.empty())
    return std::string();
  return fmt::format("the draft model may have been made for another use: {}",
                     differing);
}

} // namespace lathe::runtime

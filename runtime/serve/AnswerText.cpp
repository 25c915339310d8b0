#include "runtime/serve/AnswerText.h"

#include <algorithm>

namespace lathe::runtime::serve {

u32 countCharacters(std::string_view text) {
  return u32(std::ranges::count_if(
      text, [](char c) { return (u8(c) & 0xc0) != 0x80; }));
}

Result<TokenEntry> entryOf(i32 token, std::span<const f32> logits, u32 top) {
  auto logProbs = LogProbs::of(logits);
  if (!logProbs)
    return failFrom(logProbs);
  return TokenEntry{.token = token,
                    .logProb = logProbs->of(u32(token)),
                    .top = top == 0 ? std::vector<TokenLogProb>()
                                    : logProbs->top(top)};
}

Result<TextRules> TextRules::of(const Tokenizer &tokenizer, const Call &call) {
  auto matcher = StopMatcher::create(call.stops, call.includeStop);
  if (!matcher)
    return failFrom(matcher);
  std::vector<i32> spelled;
  for (const std::string &stop : call.stops)
    if (auto id = tokenizer.findSpecial(stop); id && tokenizer.isSpecial(*id))
      spelled.push_back(*id);
  return TextRules{.tokenizer = tokenizer,
                   .matcher = std::move(*matcher),
                   .spelledStops = std::move(spelled),
                   .includeStop = call.includeStop,
                   .logProbs = call.logProbs,
                   .topLogProbs = call.topLogProbs};
}

std::vector<i32> TextRules::stopTokens(const Call &call) const {
  std::vector<i32> ids = call.stopTokens;
  if (!includeStop)
    ids.insert(ids.end(), spelledStops.begin(), spelledStops.end());
  if (!call.ignoreEnd)
    for (i32 id : tokenizer.spec().endIds)
      if (!includeStop || std::ranges::count(spelledStops, id) == 0)
        ids.push_back(id);
  return ids;
}

Result<bool> AnswerText::push(i32 token, std::span<const f32> logits) {
  ++count;
  if (rules->logProbs) {
    auto entry = entryOf(token, logits, rules->topLogProbs);
    if (!entry)
      return failFrom(entry);
    entry->offset = characters;
    waiting.push_back(std::move(*entry));
  }
  decoded.clear();
  if (rules->includeStop &&
      std::ranges::count(rules->spelledStops, token) != 0) {
    decoder.flush(decoded);
    decoded += rules->tokenizer.tokenBytes(token);
  } else {
    decoder.push(token, decoded);
  }
  if (rules->logProbs)
    characters += countCharacters(decoded);
  return matcher.push(decoded, ready);
}

bool AnswerText::flush() {
  decoded.clear();
  decoder.flush(decoded);
  bool isStopped = matcher.push(decoded, ready);
  return matcher.flush(ready) || isStopped;
}

void AnswerText::clear() {
  ready.clear();
  waiting.clear();
}

void AnswerText::begin(std::string_view text,
                       std::span<const TokenEntry> entries) {
  ready += text;
  waiting.insert(waiting.end(), entries.begin(), entries.end());
  characters = countCharacters(text);
}

} // namespace lathe::runtime::serve

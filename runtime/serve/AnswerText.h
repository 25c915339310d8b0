/// \file
/// From an answer's tokens to what a client is shown of them.
#ifndef LATHE_RUNTIME_SERVE_ANSWERTEXT_H
#define LATHE_RUNTIME_SERVE_ANSWERTEXT_H

#include "runtime/sample/LogProbs.h"
#include "runtime/serve/Call.h"
#include "runtime/support/Result.h"
#include "runtime/text/StopMatcher.h"
#include "runtime/text/StreamDecoder.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime::serve {

/// A token with its log-probabilities.
struct TokenEntry {
  i32 token;
  /// Where its text begins in the answer's, in characters (code points).
  u32 offset = 0;
  /// Nothing: it has none, like a prompt's first token.
  std::optional<f64> logProb = std::nullopt;
  std::vector<TokenLogProb> top = {}; ///< The likeliest, likeliest first.
};

/// What a call's answers are made with. Made once per call.
class TextRules {
public:
  /// Errors: InvalidInput (stop strings, StopMatcher::create).
  static Result<TextRules> of(const Tokenizer &tokenizer, const Call &call);

  /// Ids that end an answer before it gets them.
  std::vector<i32> stopTokens(const Call &call) const;

  const Tokenizer tokenizer;
  const StopMatcher matcher;
  /// Control tokens whose texts are stop strings.
  const std::vector<i32> spelledStops;
  /// Stop strings stay: so do the texts of `spelledStops`.
  const bool includeStop;
  const bool logProbs;
  const u32 topLogProbs;
};

/// One answer: decodes its tokens and looks for stop strings. One thread at a
/// time; keeps a pointer to the rules.
class AnswerText {
public:
  explicit AnswerText(const TextRules &rules)
      : rules(&rules), decoder(rules.tokenizer), matcher(rules.matcher) {}

  /// Takes the next token; text that is certain now is appended to text().
  /// `logits` [vocab] are those that it was drawn from, if log-probabilities
  /// are asked for. True: a stop string has ended the answer. Errors as
  /// LogProbs::of.
  Result<bool> push(i32 token, std::span<const f32> logits);

  /// The answer has ended otherwise: the rest of its text. True: a stop string
  /// was waiting in it.
  bool flush();

  /// Text and entries that nobody has taken yet.
  std::string_view text() const { return ready; }
  std::span<const TokenEntry> entries() const { return waiting; }
  void clear();

  /// Puts what belongs in front of the answer.
  void begin(std::string_view text, std::span<const TokenEntry> entries);

  u32 tokens() const { return count; }

private:
  const TextRules *rules;
  StreamDecoder decoder;
  StopMatcher matcher;
  std::string decoded, ready;
  std::vector<TokenEntry> waiting;
  u32 characters = 0; ///< Decoded so far, the echoed ones included.
  u32 count = 0;
};

/// Characters (code points) of valid UTF-8.
u32 countCharacters(std::string_view text);

/// The entry of a token that was drawn from, or could have been, `logits`.
/// Errors as LogProbs::of.
Result<TokenEntry> entryOf(i32 token, std::span<const f32> logits, u32 top);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_ANSWERTEXT_H

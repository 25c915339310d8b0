/// \file
/// Text to token ids and back.
#ifndef LATHE_RUNTIME_TEXT_TOKENIZER_H
#define LATHE_RUNTIME_TEXT_TOKENIZER_H

#include "runtime/support/Result.h"
#include "runtime/text/TokenizerSpec.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// How text is encoded.
struct EncodeOptions {
  /// Adds the begin and end tokens that the model asks for, each only if the
  /// ids do not have it there already.
  bool addSpecial = false;
  /// Text that spells a control token becomes that token. Off, it stays text
  /// whatever it looks like: what people type must be encoded so.
  bool parseSpecial = false;
};

/// How ids are decoded.
struct DecodeOptions {
  /// Control and unknown tokens appear as their text instead of not at all.
  bool showSpecial = false;
  /// The ids are a whole text, not the continuation of one: the space that
  /// encoding put in front is taken away again.
  bool textStart = true;
};

/// A stretch of a rendered chat prompt.
struct PromptSegment {
  std::string text;
  /// True for text that the chat template itself wrote; false for messages,
  /// tool results and whatever else came from outside.
  bool trusted = false;
};

/// A vocabulary and its algorithm. Immutable and cheap to copy (copies share
/// it); any number of threads may call any function at once.
class Tokenizer {
public:
  /// Limits on a spec.
  static constexpr size_t kMaxTokens = size_t{1} << 24;
  static constexpr size_t kMaxTokenBytes = size_t{1} << 16;
  static constexpr size_t kMaxVocabularyBytes = size_t{1} << 30;
  /// Limit on a text.
  static constexpr size_t kMaxTextBytes = size_t{1} << 29;

  /// Checks a spec and builds its indices. Errors name the item: an empty
  /// vocabulary, arrays of unequal length, ids out of range, scores that are
  /// not finite, merges of unknown pieces, an unknown pre-tokenizer, a
  /// SentencePiece vocabulary with neither byte pieces nor an unknown token.
  /// Empty tokens are allowed (they match nothing); of tokens with equal text
  /// encoding yields the lowest id.
  static Result<Tokenizer> create(TokenizerSpec spec);

  /// The ids of a text, which may hold any bytes, NUL and invalid UTF-8
  /// included: bytes that form no character are encoded one by one, as far as
  /// the vocabulary has tokens for them. User-defined tokens are matched first
  /// whatever the options say. Fails with Exhausted if the text is longer than
  /// kMaxTextBytes.
  Result<std::vector<int32_t>> encode(std::string_view text,
                                      EncodeOptions options = {}) const;

  /// The ids of a rendered chat prompt: those of the joined text, except that
  /// control tokens are recognized only in trusted segments. Begin and end
  /// tokens are not added, they are the template's business.
  Result<std::vector<int32_t>>
  encodeSegments(std::span<const PromptSegment> segments) const;

  /// The text of ids, always valid UTF-8: what forms no character becomes
  /// U+FFFD. Ids outside the vocabulary (padding of the logits) are empty text.
  std::string decode(std::span<const int32_t> ids,
                     DecodeOptions options = {}) const;

  /// As decode, but the very bytes, which need not be valid UTF-8.
  std::string decodeBytes(std::span<const int32_t> ids,
                          DecodeOptions options = {}) const;

  /// The bytes that a token adds to a text; for control and unknown tokens
  /// their text. Empty for unused tokens and ids outside the vocabulary. The
  /// view lives as long as any copy of this tokenizer.
  std::string_view tokenBytes(int32_t id) const;

  /// Control and unknown tokens, which decode hides by default. False for ids
  /// outside the vocabulary.
  bool isSpecial(int32_t id) const;

  /// True for a user-defined token: matched as whole text, shown by decode.
  bool isUserDefined(int32_t id) const;

  /// True if this id ends generation.
  bool isEnd(int32_t id) const;

  /// True if encoding with addSpecial and parseSpecial finds the begin token
  /// spelled out at the start of the text: worth a warning, as the text then
  /// supplies what the tokenizer would have added.
  bool spellsBos(std::string_view text) const;

  /// The control or user-defined token with exactly this text.
  std::optional<int32_t> findSpecial(std::string_view text) const;

  /// The number of tokens; valid ids are below it.
  int32_t vocabularySize() const;

  /// What the tokenizer was made of.
  const TokenizerSpec &spec() const;

private:
  friend class StreamDecoder;
  struct Parts;

  explicit Tokenizer(std::shared_ptr<const Parts> parts);

  std::shared_ptr<const Parts> parts;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_TEXT_TOKENIZER_H

/// \file
/// Everything a tokenizer is made of, as plain data: what a model file's reader
/// fills in, what the engine file stores and what Tokenizer::create checks.
#ifndef LATHE_RUNTIME_TEXT_TOKENIZERSPEC_H
#define LATHE_RUNTIME_TEXT_TOKENIZERSPEC_H

#include <cstdint>
#include <string>
#include <vector>

namespace lathe::runtime {

/// The algorithm that turns text into pieces of the vocabulary.
enum class TokenizerModel : uint8_t {
  ByteLevelBpe,     ///< GPT-2's: "gpt2" in GGUF. Tokens in its byte alphabet.
  SentencePieceBpe, ///< "llama" in GGUF: BPE by score, spaces as U+2581.
  Unigram,          ///< "t5" in GGUF: SentencePiece's unigram model.
};

/// What a token is; the numbers are those of tokenizer.ggml.token_type.
enum class TokenType : uint8_t {
  Undefined = 0,
  Normal = 1,
  Unknown = 2,     ///< Stands for text that the vocabulary cannot express.
  Control = 3,     ///< A marker; only trusted text may produce it.
  UserDefined = 4, ///< Whole text matched before anything else is split.
  Unused = 5,
  Byte = 6, ///< "<0xHH>": one byte of text.
};

/// The id of a special token that a vocabulary does not have.
inline constexpr int32_t kNoToken = -1;

/// A tokenizer as plain data. Ids index `tokens`; kNoToken means "has none".
struct TokenizerSpec {
  TokenizerModel model = TokenizerModel::ByteLevelBpe;
  /// How text is split before BPE, by the name that GGUF files use for it
  /// ("gpt-2", "llama-bpe", "qwen2", "smollm", …; PreTokenizer::knownNames).
  /// Only byte-level BPE has one.
  std::string preTokenizer;

  std::vector<std::string> tokens;
  std::vector<float> scores;       ///< One per token; empty for byte-level BPE.
  std::vector<TokenType> types;    ///< One per token, or empty: all normal.
  std::vector<std::string> merges; ///< "left right" by rank; byte-level only.

  int32_t bosId = kNoToken;
  int32_t eosId = kNoToken;
  int32_t eotId = kNoToken; ///< End of a turn.
  int32_t eomId = kNoToken; ///< End of a message that waits for a tool.
  int32_t unkId = kNoToken;
  int32_t padId = kNoToken;
  /// Every id that ends generation (eosId, eotId, eomId and others that the
  /// model was trained to end with).
  std::vector<int32_t> endIds;

  bool addBos = false; ///< Encoding with special tokens starts with bosId.
  bool addEos = false; ///< … and ends with eosId.
  /// SentencePiece: a space is put in front of the text.
  bool addSpacePrefix = false;
  /// … and again after every special token inside it, as llama.cpp and the
  /// "legacy" Hugging Face tokenizers do; false: only at the very start.
  bool spacePrefixAfterSpecial = true;
  /// Unigram: runs of spaces become one and outer ones go.
  bool removeExtraSpaces = false;
  /// Unigram: the space of addSpacePrefix is put behind the text instead.
  bool spaceAsSuffix = false;
  /// Unigram: SentencePiece's precompiled normalization map, or empty.
  std::vector<uint8_t> charsmap;

  std::string chatTemplate; ///< Jinja source, empty if the model has none.

  bool operator==(const TokenizerSpec &) const = default;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_TEXT_TOKENIZERSPEC_H

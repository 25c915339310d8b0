#include "runtime/engine/TokenizerSection.h"

#include "codegen/engine/tokenizer_generated.h"
#include "runtime/engine/FileLayout.h"
#include "runtime/engine/Validate.h"
#include "runtime/support/Quote.h"

#include <array>
#include <optional>

namespace lathe::runtime {

namespace fb = engine::fb;

namespace {

std::optional<TokenizerModel> modelOf(std::string_view name) {
  if (name == "gpt2")
    return TokenizerModel::ByteLevelBpe;
  if (name == "llama")
    return TokenizerModel::SentencePieceBpe;
  if (name == "t5")
    return TokenizerModel::Unigram;
  return std::nullopt;
}

/// Strings may share their bytes in a FlatBuffer, so that a small file could
/// ask for any amount of memory; `budget` is what copies may still take.
bool copyStrings(
    const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> *from,
    std::vector<std::string> &to, uint64_t &budget) {
  if (!from)
    return true;
  to.reserve(from->size());
  for (const flatbuffers::String *text : *from) {
    if (text->size() > budget)
      return false;
    budget -= text->size();
    to.emplace_back(viewOf(text));
  }
  return true;
}

template <typename T, typename U>
void copyList(const flatbuffers::Vector<T> *from, std::vector<U> &to) {
  if (from)
    for (T value : *from)
      to.push_back(static_cast<U>(value));
}

} // namespace

Result<TokenizerSpec> decodeTokenizer(std::span<const uint8_t> bytes,
                                      uint32_t vocab) {
  if (bytes.size() > maxTokenizerBytes)
    return fail(ErrorKind::InvalidInput,
                "the tokenizer has {} bytes, expected at most {}", bytes.size(),
                maxTokenizerBytes);
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  if (!fb::VerifyTokenizerBuffer(verifier))
    return fail(ErrorKind::InvalidInput,
                "the tokenizer is not a well-formed FlatBuffer with identifier "
                "'{}'",
                fb::TokenizerIdentifier());
  const fb::Tokenizer &stored = *fb::GetTokenizer(bytes.data());
  auto model = modelOf(viewOf(stored.model()));
  if (!model)
    return fail(ErrorKind::Unsupported,
                "the tokenizer's model is {}, expected 'gpt2', 'llama' or 't5'",
                quoted(viewOf(stored.model())));

  TokenizerSpec spec;
  spec.model = *model;
  spec.preTokenizer = viewOf(stored.pre());
  uint64_t budget = bytes.size();
  if (!copyStrings(stored.tokens(), spec.tokens, budget) ||
      !copyStrings(stored.merges(), spec.merges, budget))
    return fail(ErrorKind::InvalidInput,
                "the tokenizer's texts overlap, expected each in a place of "
                "its own");
  size_t count = spec.tokens.size();
  if (count == 0 || count > vocab)
    return fail(ErrorKind::InvalidInput,
                "the tokenizer has {} tokens, expected 1 to {}, the rows of "
                "the model's vocabulary",
                count, vocab);
  copyList(stored.scores(), spec.scores);
  copyList(stored.types(), spec.types);
  copyList(stored.end_of_generation(), spec.endIds);
  copyList(stored.charsmap(), spec.charsmap);
  if ((!spec.scores.empty() && spec.scores.size() != count) ||
      (!spec.types.empty() && spec.types.size() != count))
    return fail(ErrorKind::InvalidInput,
                "the tokenizer has {} scores and {} types, expected none or "
                "{}, one per token",
                spec.scores.size(), spec.types.size(), count);
  for (TokenType type : spec.types)
    if (type > TokenType::Byte)
      return fail(ErrorKind::InvalidInput,
                  "the tokenizer has a token of type {}, expected 0 to {}",
                  unsigned(type), unsigned(TokenType::Byte));

  spec.bosId = stored.bos();
  spec.eosId = stored.eos();
  spec.eotId = stored.eot();
  spec.eomId = stored.eom();
  spec.unkId = stored.unk();
  spec.padId = stored.pad();
  auto isToken = [&](int32_t id) { return id >= 0 && size_t(id) < count; };
  for (int32_t id :
       {spec.bosId, spec.eosId, spec.eotId, spec.eomId, spec.unkId, spec.padId})
    if (id != kNoToken && !isToken(id))
      return fail(ErrorKind::InvalidInput,
                  "the tokenizer names token {}, expected -1 to {}", id,
                  count - 1);
  for (int32_t id : spec.endIds)
    if (!isToken(id))
      return fail(ErrorKind::InvalidInput,
                  "the tokenizer ends at token {}, expected 0 to {}", id,
                  count - 1);

  spec.addBos = stored.add_bos();
  spec.addEos = stored.add_eos();
  spec.addSpacePrefix = stored.add_space_prefix();
  spec.spacePrefixAfterSpecial = stored.space_prefix_after_special();
  spec.removeExtraSpaces = stored.remove_extra_spaces();
  spec.spaceAsSuffix = stored.space_as_suffix();
  spec.chatTemplate = viewOf(stored.chat_template());
  return spec;
}

} // namespace lathe::runtime

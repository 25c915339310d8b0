#include "tests/unit/text/Vocabularies.h"

#include "runtime/text/Utf8.h"

#include <fmt/format.h>
#include <stdexcept>

namespace lathe::runtime::test {

std::string inByteAlphabet(std::string_view bytes) {
  std::string out;
  for (char c : bytes) {
    auto byte = static_cast<uint8_t>(c);
    // Bytes that do not print are numbered from U+0100 on, in order: 0 to 32,
    // 127 to 160, 173.
    if (byte <= 0x20)
      appendUtf8(0x100 + byte, out);
    else if (byte >= 0x7F && byte <= 0xA0)
      appendUtf8(0x121 + byte - 0x7F, out);
    else if (byte == 0xAD)
      appendUtf8(0x143, out);
    else
      appendUtf8(byte, out);
  }
  return out;
}

TokenizerSpec
byteLevelSpec(std::string preTokenizer,
              const std::vector<std::pair<std::string, std::string>> &merges) {
  TokenizerSpec spec;
  spec.model = TokenizerModel::ByteLevelBpe;
  spec.preTokenizer = std::move(preTokenizer);
  for (int byte = 0; byte < 256; ++byte)
    spec.tokens.push_back(inByteAlphabet(std::string(1, char(byte))));
  for (const auto &[left, right] : merges) {
    spec.tokens.push_back(inByteAlphabet(left + right));
    spec.merges.push_back(inByteAlphabet(left) + " " + inByteAlphabet(right));
  }
  spec.types.assign(spec.tokens.size(), TokenType::Normal);
  auto add = [&](const char *text, TokenType type) {
    spec.tokens.emplace_back(text);
    spec.types.push_back(type);
    return static_cast<int32_t>(spec.tokens.size() - 1);
  };
  add("<|endoftext|>", TokenType::Control);
  spec.bosId = add("<|im_start|>", TokenType::Control);
  spec.eosId = add("<|im_end|>", TokenType::Control);
  add("<tool>", TokenType::UserDefined);
  spec.endIds = {spec.eosId};
  return spec;
}

TokenizerSpec piecesSpec(const std::vector<std::string> &pieces,
                         bool bytePieces) {
  TokenizerSpec spec;
  spec.model = TokenizerModel::SentencePieceBpe;
  auto add = [&](std::string text, TokenType type, float score = 0) {
    spec.tokens.push_back(std::move(text));
    spec.types.push_back(type);
    spec.scores.push_back(score);
  };
  add("<unk>", TokenType::Unknown);
  add("<s>", TokenType::Control);
  add("</s>", TokenType::Control);
  for (int byte = 0; bytePieces && byte < 256; ++byte)
    add(fmt::format("<0x{:02X}>", byte), TokenType::Byte);
  add("<|im_start|>", TokenType::UserDefined);
  float score = 0;
  for (const std::string &piece : pieces)
    add(piece, TokenType::Normal, score -= 1);
  spec.unkId = 0;
  spec.bosId = 1;
  spec.eosId = 2;
  spec.endIds = {2};
  spec.addBos = true;
  spec.addSpacePrefix = true;
  return spec;
}

Tokenizer makeTokenizer(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::create(std::move(spec));
  if (!tokenizer)
    throw std::runtime_error(tokenizer.error().message);
  return std::move(*tokenizer);
}

std::vector<int32_t> encode(const Tokenizer &tokenizer, std::string_view text,
                            EncodeOptions options) {
  auto ids = tokenizer.encode(text, options);
  if (!ids)
    throw std::runtime_error(ids.error().message);
  return std::move(*ids);
}

std::vector<std::string> names(const Tokenizer &tokenizer,
                               const std::vector<int32_t> &ids) {
  std::vector<std::string> out;
  for (int32_t id : ids)
    out.push_back(tokenizer.spec().tokens.at(id));
  return out;
}

} // namespace lathe::runtime::test

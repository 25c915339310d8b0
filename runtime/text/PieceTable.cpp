#include "runtime/text/PieceTable.h"

#include "runtime/text/Utf8.h"

#include <algorithm>

namespace lathe::runtime {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81"; // U+2581

/// GPT-2's bytes_to_unicode, inverted: printable Latin-1 characters stand for
/// themselves, all other bytes for U+0100 upwards in order.
struct ByteAlphabet {
  std::array<int16_t, 324> byteOf;

  ByteAlphabet() {
    byteOf.fill(-1);
    uint32_t shifted = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      bool itself = (byte >= 0x21 && byte <= 0x7E) ||
                    (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      byteOf[itself ? byte : shifted++] = static_cast<int16_t>(byte);
    }
  }
};

void appendWithSpaces(std::string_view text, std::vector<char> &out) {
  while (!text.empty()) {
    size_t mark = std::min(text.find(kSpaceMark), text.size());
    out.insert(out.end(), text.begin(), text.begin() + mark);
    if (mark == text.size())
      return;
    out.push_back(' ');
    text.remove_prefix(mark + kSpaceMark.size());
  }
}

} // namespace

int byteNamedBy(std::string_view text) {
  auto digit = [](char c) {
    if (c >= '0' && c <= '9')
      return c - '0';
    if (c >= 'A' && c <= 'F')
      return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
      return c - 'a' + 10;
    return -1;
  };
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>')
    return -1;
  int high = digit(text[3]), low = digit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool decodeByteAlphabet(std::string_view text, std::string &out) {
  static const ByteAlphabet alphabet;
  out.clear();
  while (!text.empty()) {
    Utf8Unit unit = readUtf8(text);
    if (unit.kind != Utf8Kind::Valid ||
        unit.codePoint >= alphabet.byteOf.size() ||
        alphabet.byteOf[unit.codePoint] < 0)
      return false;
    out.push_back(static_cast<char>(alphabet.byteOf[unit.codePoint]));
    text.remove_prefix(unit.size);
  }
  return true;
}

Result<PieceTable> PieceTable::create(const TokenizerSpec &spec) {
  PieceTable table;
  table.byteTokens_.fill(kNoToken);
  size_t total = 0;
  for (const std::string &token : spec.tokens)
    total += token.size();
  table.bytes_.reserve(total);
  table.offsets_.reserve(spec.tokens.size() + 1);
  table.offsets_.push_back(0);

  bool byteLevel = spec.model == TokenizerModel::ByteLevelBpe;
  auto append = [&](std::string_view text) {
    table.bytes_.insert(table.bytes_.end(), text.begin(), text.end());
  };
  std::string raw;
  for (int32_t id = 0; id < static_cast<int32_t>(spec.tokens.size()); ++id) {
    const std::string &token = spec.tokens[id];
    switch (typeOf(spec, id)) {
    case TokenType::Normal:
      if (!byteLevel) {
        appendWithSpaces(token, table.bytes_);
        break;
      }
      if (!decodeByteAlphabet(token, raw)) {
        append(token);
        break;
      }
      append(raw);
      if (raw.size() == 1) {
        int32_t &slot = table.byteTokens_[static_cast<uint8_t>(raw[0])];
        slot = slot == kNoToken ? id : slot;
      }
      break;
    case TokenType::Byte: {
      int byte = byteNamedBy(token);
      if (byte < 0)
        return fail(ErrorKind::InvalidInput,
                    "tokenizer: byte token {} is not of the form <0xHH>", id);
      table.bytes_.push_back(static_cast<char>(byte));
      int32_t &slot = table.byteTokens_[byte];
      if (!byteLevel && slot == kNoToken)
        slot = id;
      break;
    }
    case TokenType::Undefined:
    case TokenType::Unused:
      break;
    case TokenType::Unknown:
    case TokenType::Control:
    case TokenType::UserDefined:
      append(token);
      break;
    }
    table.offsets_.push_back(static_cast<uint32_t>(table.bytes_.size()));
  }
  return table;
}

bool PieceTable::hasAllBytes() const {
  return std::ranges::find(byteTokens_, kNoToken) == byteTokens_.end();
}

} // namespace lathe::runtime

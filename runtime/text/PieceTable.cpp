#include "runtime/text/PieceTable.h"

#include <algorithm>

namespace lathe::runtime {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81"; // U+2581

/// GPT-2's bytes_to_unicode, inverted: printable Latin-1 characters stand for
/// themselves, all other bytes for U+0100 upwards in order.
struct ByteAlphabet {
  /// By code point, -1 if it stands for no byte. As far as the lead bytes reach
  /// that occur: 0xC5 ends with U+017F.
  std::array<int16_t, 0x180> byteOf;

  constexpr ByteAlphabet() {
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

bool appendFromByteAlphabet(std::string_view text, std::string &out) {
  static constexpr ByteAlphabet alphabet;
  size_t size = out.size();
  out.resize(size + text.size());
  for (size_t i = 0; i < text.size();) {
    // A vocabulary has megabytes of this: only the UTF-8 that the alphabet
    // needs, one byte or two with a lead of 0xC2 to 0xC5.
    uint32_t codePoint = static_cast<uint8_t>(text[i++]);
    if (codePoint >= 0x80) {
      if (codePoint < 0xC2 || codePoint > 0xC5 || i == text.size() ||
          (static_cast<uint8_t>(text[i]) & 0xC0) != 0x80)
        return false;
      codePoint =
          (codePoint & 0x1F) << 6 | (static_cast<uint8_t>(text[i++]) & 0x3F);
    }
    int16_t byte = alphabet.byteOf[codePoint];
    if (byte < 0)
      return false;
    out[size++] = static_cast<char>(byte);
  }
  out.resize(size);
  return true;
}

Result<PieceTable> PieceTable::create(const TokenizerSpec &spec) {
  PieceTable table;
  table.byteTokens.fill(kNoToken);
  size_t total = 0;
  for (const std::string &token : spec.tokens)
    total += token.size();
  table.bytes.reserve(total);
  table.offsets.reserve(spec.tokens.size() + 1);
  table.offsets.push_back(0);

  bool byteLevel = spec.model == TokenizerModel::ByteLevelBpe;
  auto append = [&](std::string_view text) {
    table.bytes.insert(table.bytes.end(), text.begin(), text.end());
  };
  std::string raw;
  for (int32_t id = 0; id < static_cast<int32_t>(spec.tokens.size()); ++id) {
    const std::string &token = spec.tokens[id];
    switch (typeOf(spec, id)) {
    case TokenType::Normal:
      if (!byteLevel) {
        appendWithSpaces(token, table.bytes);
        break;
      }
      raw.clear();
      if (!appendFromByteAlphabet(token, raw)) {
        append(token);
        break;
      }
      append(raw);
      if (raw.size() == 1) {
        int32_t &slot = table.byteTokens[static_cast<uint8_t>(raw[0])];
        slot = slot == kNoToken ? id : slot;
      }
      break;
    case TokenType::Byte: {
      int byte = byteNamedBy(token);
      if (byte < 0)
        return fail(ErrorKind::InvalidInput,
                    "tokenizer: byte token {} is not of the form <0xHH>", id);
      table.bytes.push_back(static_cast<char>(byte));
      int32_t &slot = table.byteTokens[byte];
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
    table.offsets.push_back(static_cast<uint32_t>(table.bytes.size()));
  }
  return table;
}

bool PieceTable::hasAllBytes() const {
  return std::ranges::find(byteTokens, kNoToken) == byteTokens.end();
}

} // namespace lathe::runtime

#include "runtime/support/Quote.h"

#include <cstdint>
#include <fmt/format.h>

namespace lathe::runtime {

namespace {

/// Length in bytes of the well-formed UTF-8 character at the front of `text`
/// (not empty), or 0. Bounds of the second byte: Unicode 15, table 3-7.
size_t characterLength(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t lead = byte(0);
  if (lead < 0x80)
    return 1;
  if (lead < 0xc2 || lead > 0xf4)
    return 0;
  size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (text.size() < length)
    return 0;
  uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high)
    return 0;
  for (size_t i = 2; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  return length;
}

/// Appends `text` to `out`, bytes that could break a line or a terminal (C0,
/// DEL, C1, broken UTF-8) and those in `special` as \xNN.
void appendEscaped(std::string &out, std::string_view text,
                   std::string_view special) {
  while (!text.empty()) {
    size_t length = characterLength(text);
    uint8_t lead = static_cast<uint8_t>(text[0]);
    bool control =
        lead < 0x20 || lead == 0x7f ||
        (length == 2 && lead == 0xc2 && static_cast<uint8_t>(text[1]) < 0xa0);
    if (length && !control && special.find(text[0]) == special.npos) {
      out += text.substr(0, length);
      text.remove_prefix(length);
    } else {
      out += fmt::format("\\x{:02x}", lead);
      text.remove_prefix(1);
    }
  }
}

} // namespace

bool isUtf8(std::string_view text) {
  while (!text.empty()) {
    size_t length = characterLength(text);
    if (!length)
      return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string quoted(std::string_view text, size_t maxBytes) {
  std::string out = "'";
  if (text.size() <= maxBytes) {
    appendEscaped(out, text, "'\\");
    return out + "'";
  }
  // Do not cut inside a character.
  size_t cut = maxBytes;
  while (cut > 0 && maxBytes - cut < 3 &&
         (static_cast<uint8_t>(text[cut]) & 0xc0) == 0x80)
    --cut;
  appendEscaped(out, text.substr(0, cut), "'\\");
  return out + fmt::format("…' ({} bytes)", text.size());
}

std::string displayPath(std::string_view path) {
  std::string out;
  appendEscaped(out, path, "");
  return out;
}

} // namespace lathe::runtime

#include "runtime/text/Utf8.h"

namespace lathe::runtime {

Utf8Unit readUtf8(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t lead = byte(0);
  if (lead < 0x80)
    return {Utf8Kind::Valid, 1, lead};

  // The second byte's range depends on the lead: it excludes overlong forms,
  // surrogates and what lies above U+10FFFF (Unicode table 3-7).
  uint32_t size = 0;
  uint8_t low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    size = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    size = 3;
    low = lead == 0xE0 ? 0xA0 : 0x80;
    high = lead == 0xED ? 0x9F : 0xBF;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4;
    low = lead == 0xF0 ? 0x90 : 0x80;
    high = lead == 0xF4 ? 0x8F : 0xBF;
  } else {
    return {Utf8Kind::Invalid, 1, 0};
  }

  uint32_t codePoint = lead & (0xFF >> (size + 1));
  for (uint32_t i = 1; i < size; ++i) {
    if (i == text.size())
      return {Utf8Kind::Incomplete, i, 0};
    if (byte(i) < low || byte(i) > high)
      return {Utf8Kind::Invalid, i, 0};
    codePoint = codePoint << 6 | (byte(i) & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Kind::Valid, size, codePoint};
}

void appendUtf8(uint32_t codePoint, std::string &out) {
  auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (codePoint < 0x80) {
    put(codePoint);
  } else if (codePoint < 0x800) {
    put(0xC0 | codePoint >> 6);
    put(0x80 | (codePoint & 0x3F));
  } else if (codePoint < 0x10000) {
    put(0xE0 | codePoint >> 12);
    put(0x80 | (codePoint >> 6 & 0x3F));
    put(0x80 | (codePoint & 0x3F));
  } else {
    put(0xF0 | codePoint >> 18);
    put(0x80 | (codePoint >> 12 & 0x3F));
    put(0x80 | (codePoint >> 6 & 0x3F));
    put(0x80 | (codePoint & 0x3F));
  }
}

bool isValidUtf8(std::string_view text) {
  while (!text.empty()) {
    Utf8Unit unit = readUtf8(text);
    if (unit.kind != Utf8Kind::Valid)
      return false;
    text.remove_prefix(unit.size);
  }
  return true;
}

void moveValidUtf8(std::string &pending, std::string &out, bool last) {
  std::string_view rest = pending;
  while (!rest.empty()) {
    Utf8Unit unit = readUtf8(rest);
    if (unit.kind == Utf8Kind::Incomplete && !last)
      break;
    if (unit.kind == Utf8Kind::Valid)
      out.append(rest.substr(0, unit.size));
    else
      out.append("\xEF\xBF\xBD");
    rest.remove_prefix(unit.size);
  }
  pending.erase(0, pending.size() - rest.size());
}

} // namespace lathe::runtime

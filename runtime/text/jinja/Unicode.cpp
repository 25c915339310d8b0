#include "runtime/text/jinja/Unicode.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace lathe::runtime::jinja {

namespace {

/// first, first + stride, … last.
struct Range {
  uint32_t first, last, stride;
};

/// A Range whose code points map to themselves plus `delta`.
struct Mapping {
  uint32_t first, last, stride;
  int32_t delta;
};

/// One code point that maps to up to three (0: none).
struct Expansion {
  uint32_t from, to1, to2, to3;
};

#include "runtime/text/jinja/UnicodeTables.inc"

template <typename Row, size_t N>
const Row *findRow(const Row (&rows)[N], char32_t c) {
  auto it = std::upper_bound(
      std::begin(rows), std::end(rows), c,
      [](char32_t value, const Row &row) { return value < row.first; });
  if (it == std::begin(rows))
    return nullptr;
  --it;
  return c <= it->last && (c - it->first) % it->stride == 0 ? &*it : nullptr;
}

template <size_t N>
bool appendExpansion(std::string &out, char32_t c, const Expansion (&rows)[N]) {
  auto it = std::lower_bound(
      std::begin(rows), std::end(rows), c,
      [](const Expansion &row, char32_t value) { return row.from < value; });
  if (it == std::end(rows) || it->from != c)
    return false;
  for (uint32_t to : {it->to1, it->to2, it->to3})
    if (to != 0)
      appendUtf8(out, to);
  return true;
}

template <size_t N> char32_t mapped(char32_t c, const Mapping (&rows)[N]) {
  const Mapping *row = findRow(rows, c);
  return row ? static_cast<char32_t>(static_cast<int64_t>(c) + row->delta) : c;
}

} // namespace

std::optional<size_t> findInvalidUtf8(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    auto lead = static_cast<unsigned char>(bytes[at]);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    size_t width = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || width > bytes.size() - at)
      return at;
    for (size_t i = 1; i < width; ++i)
      if ((static_cast<unsigned char>(bytes[at + i]) & 0xC0) != 0x80)
        return at;
    char32_t c = decodeAt(bytes, at);
    static const char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (c < least[width] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
      return at;
    at += width;
  }
  return std::nullopt;
}

char32_t decodeAt(std::string_view bytes, size_t at) {
  auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(bytes[at + i]));
  };
  switch (charWidth(bytes, at)) {
  case 1:
    return byte(0);
  case 2:
    return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
  case 3:
    return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  default:
    return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 |
           (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
}

size_t countChars(std::string_view bytes) {
  return static_cast<size_t>(std::count_if(
      bytes.begin(), bytes.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

size_t previousChar(std::string_view bytes, size_t end) {
  do
    --end;
  while (end > 0 && (bytes[end] & 0xC0) == 0x80);
  return end;
}

void appendUtf8(std::string &out, char32_t c) {
  auto tail = [&](int shift) {
    out.push_back(static_cast<char>(0x80 | ((c >> shift) & 0x3F)));
  };
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (c >> 6)));
    tail(0);
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (c >> 12)));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | (c >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

bool isSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 ||
         c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool isLineBreak(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
         c == 0x2028 || c == 0x2029;
}

bool isPrintable(char32_t c) { return findRow(printableRanges, c); }
bool isAlpha(char32_t c) { return findRow(alphaRanges, c); }
bool isNumeric(char32_t c) { return findRow(numericRanges, c); }
bool isDigit(char32_t c) { return findRow(digitRanges, c); }
bool isDecimal(char32_t c) { return findRow(decimalRanges, c); }
bool isUpper(char32_t c) { return findRow(upperRanges, c); }
bool isLower(char32_t c) { return findRow(lowerRanges, c); }
bool isTitle(char32_t c) { return findRow(titleRanges, c); }
bool isCased(char32_t c) { return isUpper(c) || isLower(c) || isTitle(c); }

void appendCased(std::string &out, char32_t c, Case to) {
  switch (to) {
  case Case::Upper:
    if (!appendExpansion(out, c, upperExpansions))
      appendUtf8(out, mapped(c, upperMappings));
    break;
  case Case::Lower:
    if (!appendExpansion(out, c, lowerExpansions))
      appendUtf8(out, mapped(c, lowerMappings));
    break;
  case Case::Title:
    if (!appendExpansion(out, c, titleExpansions))
      appendUtf8(out, mapped(c, titleMappings));
    break;
  }
}

} // namespace lathe::runtime::jinja

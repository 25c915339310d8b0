/// \file
/// UTF-8 and the character properties behind Python's str methods.
#ifndef LATHE_RUNTIME_TEXT_JINJA_UNICODE_H
#define LATHE_RUNTIME_TEXT_JINJA_UNICODE_H

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace lathe::runtime::jinja {

/// Offset of the first byte that is not well-formed UTF-8 (overlong forms and
/// surrogates count as ill-formed), or nothing.
std::optional<size_t> findInvalidUtf8(std::string_view bytes);

/// Bytes of the code point at `at` of well-formed `bytes`.
inline size_t charWidth(std::string_view bytes, size_t at) {
  auto lead = static_cast<unsigned char>(bytes[at]);
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/// The code point at `at` of well-formed `bytes`.
char32_t decodeAt(std::string_view bytes, size_t at);

/// Number of code points of well-formed `bytes`.
size_t countChars(std::string_view bytes);

/// Start of the code point that ends before `end` > 0.
size_t previousChar(std::string_view bytes, size_t end);

void appendUtf8(std::string &out, char32_t c);

/// str.isspace of one character.
bool isSpace(char32_t c);
/// A line end in the sense of str.splitlines.
bool isLineBreak(char32_t c);
bool isPrintable(char32_t c);
bool isAlpha(char32_t c);
bool isNumeric(char32_t c);
bool isDigit(char32_t c);
bool isDecimal(char32_t c);
bool isUpper(char32_t c);
bool isLower(char32_t c);
/// Upper, lower or title case.
bool isCased(char32_t c);
bool isTitle(char32_t c);
inline bool isAlnum(char32_t c) { return isAlpha(c) || isNumeric(c); }

enum class Case { Upper, Lower, Title };

/// Appends the full case mapping of `c` (up to three code points).
void appendCased(std::string &out, char32_t c, Case to);

} // namespace lathe::runtime::jinja

#endif // LATHE_RUNTIME_TEXT_JINJA_UNICODE_H

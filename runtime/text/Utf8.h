/// \file
/// UTF-8: which bytes of a text form characters, and text made valid.
#ifndef LATHE_RUNTIME_TEXT_UTF8_H
#define LATHE_RUNTIME_TEXT_UTF8_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lathe::runtime {

/// What the bytes at the start of a text are.
enum class Utf8Kind {
  Valid,      ///< A whole character.
  Invalid,    ///< No character starts with these bytes.
  Incomplete, ///< The text ends inside a character that could still be valid.
};

/// The first unit of a text: a character, or the longest ill-formed run that
/// the Unicode standard replaces as one (D93b, "maximal subpart").
struct Utf8Unit {
  Utf8Kind kind;
  uint32_t size;      ///< Bytes, at least 1.
  uint32_t codePoint; ///< Only if Valid.
};

/// Reads the unit at the start of `text`, which must not be empty.
Utf8Unit readUtf8(std::string_view text);

/// Appends the UTF-8 form of a code point up to 0x10FFFF.
void appendUtf8(uint32_t codePoint, std::string &out);

/// True if the whole text is valid UTF-8.
bool isValidUtf8(std::string_view text);

/// Moves what is decided of `pending` to the end of `out`: characters as they
/// are, every ill-formed run as one U+FFFD. An unfinished character at the end
/// stays in `pending`, unless `last` says that nothing will follow.
void moveValidUtf8(std::string &pending, std::string &out, bool last);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_TEXT_UTF8_H

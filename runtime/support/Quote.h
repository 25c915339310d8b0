/// \file
/// Text from outside (names in files, paths, requests) made safe to show in a
/// one-line message.
#ifndef LATHE_RUNTIME_SUPPORT_QUOTE_H
#define LATHE_RUNTIME_SUPPORT_QUOTE_H

#include <cstddef>
#include <string>
#include <string_view>

namespace lathe::runtime {

/// True if the bytes are well-formed UTF-8 (RFC 3629: no surrogates, no
/// overlong forms, nothing above U+10FFFF).
bool isUtf8(std::string_view text);

/// `text` in single quotes on one line: control characters, quotes,
/// backslashes and bytes that are not UTF-8 as \xNN; of a text longer than
/// `maxBytes`, the first part, then "…" and the byte count.
std::string quoted(std::string_view text, size_t maxBytes = 96);

/// A path without quotes, escaped as in quoted() where it needs it.
std::string displayPath(std::string_view path);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SUPPORT_QUOTE_H

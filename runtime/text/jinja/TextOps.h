/// \file
/// Operations of Python's str that filters and methods share. They keep the
/// provenance of every byte. Offsets are bytes.
#ifndef LATHE_RUNTIME_TEXT_JINJA_TEXTOPS_H
#define LATHE_RUNTIME_TEXT_JINJA_TEXTOPS_H

#include "runtime/text/jinja/Unicode.h"
#include "runtime/text/jinja/Value.h"

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe::runtime::jinja {

using Span = std::pair<size_t, size_t>; ///< [first, second)

/// Builds a text char by char; `map` appends what becomes of the character at
/// byte `at` to its string. The result has the character's provenance.
using CharMap = std::function<void(std::string &out, char32_t c, size_t at)>;
Value mapChars(Meter &meter, const Text &text, const CharMap &map);

/// str.upper, str.lower.
Value changeCase(Meter &meter, const Text &text, Case to);
/// str.capitalize.
Value capitalize(Meter &meter, const Text &text);
/// str.title.
Value titleCase(Meter &meter, const Text &text);
/// Appends the lower case of the character at `at`; knows the final sigma.
void appendLower(std::string &out, std::string_view bytes, char32_t c,
                 size_t at);

/// What str.strip leaves; `chars` null means whitespace.
Span stripSpan(std::string_view bytes, const std::string *chars, bool left,
               bool right);

/// First `part` in bytes[from, to), or npos; linear time.
size_t findBytes(std::string_view bytes, std::string_view part, size_t from,
                 size_t to);
/// Last one; may take |bytes| * |part| steps, which it spends.
size_t findLastBytes(Meter &meter, std::string_view bytes,
                     std::string_view part, size_t from, size_t to);

/// str.replace; `count` < 0: all.
Value replaceText(Meter &meter, const Text &text, const Text &from,
                  const Text &to, Int count);

/// str.splitlines without the line ends (or with).
std::vector<Span> lineSpans(std::string_view bytes, bool keepEnds);

/// separator.join(items); raises on an item that is no string unless
/// `convert` turns it into one.
Value joinText(Meter &meter, const Text &separator, const Values &items,
               bool convert);

} // namespace lathe::runtime::jinja

#endif // LATHE_RUNTIME_TEXT_JINJA_TEXTOPS_H

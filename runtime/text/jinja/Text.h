/// \file
/// A UTF-8 string that remembers, byte by byte, whether it came from the
/// template (trusted) or from the request (not): what keeps a control marker
/// typed by a user from becoming a control token.
#ifndef LATHE_RUNTIME_TEXT_JINJA_TEXT_H
#define LATHE_RUNTIME_TEXT_JINJA_TEXT_H

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime::jinja {

/// Bytes plus run-length provenance. Offsets are bytes. A value type; not
/// synchronised.
class Text {
public:
  /// The bytes up to `end` (from the previous run's end) share `trusted`.
  struct Run {
    size_t end;
    bool trusted;
  };

  Text() = default;
  Text(std::string bytes, bool trusted);

  const std::string &bytes() const { return data; }
  size_t size() const { return data.size(); }
  bool empty() const { return data.empty(); }

  /// Ascending, without gaps, neighbours differ; empty iff the text is.
  const std::vector<Run> &runs() const { return marks; }

  /// Heap bytes this text holds, for budgets.
  size_t footprint() const { return data.size() + marks.size() * sizeof(Run); }

  /// The provenance of the byte at `at` < size().
  bool trustedAt(size_t at) const { return marks[runAt(at)].trusted; }

  void append(std::string_view bytes, bool trusted);
  void append(const Text &other) { append(other, 0, other.size()); }

  /// Appends bytes [begin, end) of `other`, which must not be this text.
  void append(const Text &other, size_t begin, size_t end);

  /// Bytes [begin, end) with their provenance.
  Text slice(size_t begin, size_t end) const;

private:
  size_t runAt(size_t at) const;

  std::string data;
  std::vector<Run> marks;
};

} // namespace lathe::runtime::jinja

#endif // LATHE_RUNTIME_TEXT_JINJA_TEXT_H

#include "runtime/text/jinja/Text.h"

#include <algorithm>
#include <utility>

namespace lathe::runtime::jinja {

Text::Text(std::string bytes, bool trusted) : data(std::move(bytes)) {
  if (!data.empty())
    marks.push_back({data.size(), trusted});
}

void Text::append(std::string_view bytes, bool trusted) {
  if (bytes.empty())
    return;
  data.append(bytes);
  if (!marks.empty() && marks.back().trusted == trusted)
    marks.back().end = data.size();
  else
    marks.push_back({data.size(), trusted});
}

void Text::append(const Text &other, size_t begin, size_t end) {
  if (begin >= end)
    return;
  std::string_view bytes = other.data;
  for (size_t run = other.runAt(begin); begin < end; ++run) {
    size_t stop = std::min(other.marks[run].end, end);
    append(bytes.substr(begin, stop - begin), other.marks[run].trusted);
    begin = stop;
  }
}

Text Text::slice(size_t begin, size_t end) const {
  Text result;
  result.append(*this, begin, end);
  return result;
}

size_t Text::runAt(size_t at) const {
  auto it = std::upper_bound(
      marks.begin(), marks.end(), at,
      [](size_t value, const Run &run) { return value < run.end; });
  return static_cast<size_t>(it - marks.begin());
}

} // namespace lathe::runtime::jinja

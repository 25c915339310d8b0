#include "runtime/serve/http/Http.h"

#include <algorithm>

namespace lathe::runtime::http {

static char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; }

bool equalsNoCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view Request::header(std::string_view name) const {
  for (const Header &header : headers)
    if (equalsNoCase(header.first, name))
      return header.second;
  return {};
}

} // namespace lathe::runtime::http

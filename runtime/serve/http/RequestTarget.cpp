#include "runtime/serve/http/RequestTarget.h"
#include "kernels/abi/Types.h"
#include "runtime/serve/http/Http.h"
#include "runtime/support/Quote.h"

namespace lathe::runtime::http {

/// The value of a hexadecimal digit, or -1.
static i32 digitOf(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

static std::optional<std::string> decodePath(std::string_view text) {
  std::string path;
  path.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      path += text[i];
      continue;
    }
    if (i + 2 >= text.size())
      return std::nullopt;
    i32 high = digitOf(text[i + 1]), low = digitOf(text[i + 2]);
    i32 byte = high * 16 + low;
    // A decoded slash would be another path than the one that was written.
    if (high < 0 || low < 0 || byte < 0x20 || byte == 0x7f || byte == '/')
      return std::nullopt;
    path += char(byte);
    i += 2;
  }
  if (!isUtf8(path))
    return std::nullopt;
  return path;
}

std::optional<RequestTarget> parseTarget(std::string_view target) {
  if (target == "*")
    return RequestTarget{.path = "*", .query = {}};
  for (std::string_view scheme : {"http://", "https://"}) {
    if (!equalsNoCase(target.substr(0, scheme.size()), scheme))
      continue;
    target.remove_prefix(scheme.size());
    size_t slash = target.find_first_of("/?#");
    if (slash == 0)
      return std::nullopt;
    target.remove_prefix(std::min(slash, target.size()));
    // "http://host?query" has an empty path, which means "/".
    if (!target.starts_with('/')) {
      if (target.starts_with('#'))
        return std::nullopt;
      std::string_view query = target.substr(target.empty() ? 0 : 1);
      return RequestTarget{.path = "/", .query = std::string(query)};
    }
    break;
  }
  if (!target.starts_with('/') || target.find('#') != target.npos)
    return std::nullopt;
  size_t mark = std::min(target.find('?'), target.size());
  auto path = decodePath(target.substr(0, mark));
  if (!path)
    return std::nullopt;
  return RequestTarget{
      .path = std::move(*path),
      .query = std::string(target.substr(std::min(mark + 1, target.size())))};
}

} // namespace lathe::runtime::http

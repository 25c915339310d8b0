/// \file
/// The second word of a request line.
#ifndef LATHE_RUNTIME_SERVE_HTTP_REQUESTTARGET_H
#define LATHE_RUNTIME_SERVE_HTTP_REQUESTTARGET_H

#include <optional>
#include <string>
#include <string_view>

namespace lathe::runtime::http {

struct RequestTarget {
  std::string path; ///< Percent-decoded; "*" for the whole server.
  std::string query;
};

/// Takes apart "/path?query", "http://host/path?query" (RFC 9112, 3.2) or "*".
/// None if it is neither, has a fragment, an escape that is malformed or means
/// a slash or a control character, or if the path is not UTF-8.
std::optional<RequestTarget> parseTarget(std::string_view target);

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_REQUESTTARGET_H

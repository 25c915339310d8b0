/// \file
/// What a request shows to be let in.
#ifndef LATHE_RUNTIME_SERVE_HTTP_CREDENTIALS_H
#define LATHE_RUNTIME_SERVE_HTTP_CREDENTIALS_H

#include <optional>
#include <string>
#include <string_view>

namespace lathe::runtime::http {

struct Credentials {
  std::string key;
  /// As HTTP Basic, which browsers add by themselves once they have been told
  /// the key; whatever page asks.
  bool isBasic = false;
};

/// Of the value of an Authorization header: "Bearer KEY" (RFC 6750), or "Basic"
/// with the base64 of "USER:KEY" (RFC 7617). None if it is neither.
std::optional<Credentials> parseCredentials(std::string_view authorization);

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_CREDENTIALS_H

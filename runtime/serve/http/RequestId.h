/// \file
/// Names of requests, in logs and in the header x-request-id.
#ifndef LATHE_RUNTIME_SERVE_HTTP_REQUESTID_H
#define LATHE_RUNTIME_SERVE_HTTP_REQUESTID_H

#include <string>
#include <string_view>

namespace lathe::runtime::http {

/// The client's name for its request if it is 1 to 64 characters of
/// [A-Za-z0-9._-], else 128 random bits as hexadecimal digits.
std::string requestId(std::string_view fromClient);

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_REQUESTID_H

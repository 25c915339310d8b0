/// \file
/// The one shape of errors over HTTP, which OpenAI's clients understand.
#ifndef LATHE_RUNTIME_SERVE_HTTP_ERRORREPLY_H
#define LATHE_RUNTIME_SERVE_HTTP_ERRORREPLY_H

#include "runtime/serve/http/Http.h"

#include <string_view>

namespace lathe::runtime::http {

/// {"error":{"message","type","param","code"}}: the type follows from the
/// status ("invalid_request_error", "authentication_error",
/// "rate_limit_error", "server_error", …); an empty param or code is null.
/// Messages name no address and no path of the machine.
Reply errorReply(u32 status, std::string_view message,
                 std::string_view code = {}, std::string_view param = {});

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_ERRORREPLY_H

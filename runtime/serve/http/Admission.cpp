#include "runtime/serve/http/Admission.h"
#include "runtime/serve/http/ErrorReply.h"
#include "runtime/support/Quote.h"

namespace lathe::runtime::http {

Admission admit(const ServerState &server, const Request &request) {
  const Route *route = server.routes.find(request.method, request.path);
  bool isOpen = route && route->access == Access::Open;
  // Before anything else is told: a stranger learns no path and no method.
  if (!isOpen && !server.keys.admits(request.header("authorization"))) {
    Reply reply = errorReply(
        401, "a valid API key is needed, as \"Authorization: Bearer KEY\"",
        "invalid_api_key");
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
    return {.refusal = std::move(reply)};
  }
  if (route)
    return {.route = route};
  std::string allowed = server.routes.allowed(request.path);
  if (allowed.empty())
    return {.refusal = errorReply(
                404,
                fmt::format("there is nothing at {}", quoted(request.path)),
                "not_found")};
  Reply reply =
      errorReply(405,
                 fmt::format("{} does not answer {}, only {}",
                             quoted(request.path), request.method, allowed),
                 "method_not_allowed");
  reply.headers.emplace_back("Allow", std::move(allowed));
  return {.refusal = std::move(reply)};
}

} // namespace lathe::runtime::http

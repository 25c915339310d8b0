#include "runtime/serve/http/Admission.h"
#include "runtime/serve/http/Credentials.h"
#include "runtime/serve/http/ErrorReply.h"
#include "runtime/serve/http/Origin.h"
#include "runtime/support/Quote.h"

namespace lathe::runtime::http {

/// The 401 or 403 of who may not ask; none for who may.
static std::optional<Reply>
refuseStranger(const KeyRing &keys, const Request &request, Access access) {
  if (access == Access::Open || keys.isEmpty())
    return std::nullopt;
  auto shown = parseCredentials(request.header("authorization"));
  if (!shown || !keys.holds(shown->key)) {
    Reply reply = errorReply(
        401,
        "a valid API key is needed, as \"Authorization: Bearer KEY\" or as the "
        "password of HTTP Basic",
        "invalid_api_key");
    // A browser answers Basic with a dialog, which only a page's visitor
    // expects: a script's request has to fail instead.
    reply.headers.emplace_back("WWW-Authenticate",
                               access == Access::PromptedKey
                                   ? R"(Basic realm="lathe", charset="UTF-8")"
                                   : "Bearer");
    return reply;
  }
  if (shown->isBasic && isFromOtherPage(request))
    return errorReply(403,
                      "a key that a browser adds by itself counts only on this "
                      "server's own page, opened by its address",
                      "foreign_page");
  return std::nullopt;
}

Admission admit(const ServerState &server, const Request &request) {
  const Route *route = server.routes.find(request.method, request.path);
  // Before anything else is told: a stranger learns no path and no method.
  if (auto refusal = refuseStranger(server.keys, request,
                                    route ? route->access : Access::Key))
    return {.refusal = std::move(refusal)};
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

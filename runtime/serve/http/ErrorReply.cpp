#include "runtime/serve/http/ErrorReply.h"

#include <nlohmann/json.hpp>

namespace lathe::runtime::http {

static const char *typeOf(u32 status) {
  switch (status) {
  case 401:
    return "authentication_error";
  case 403:
    return "permission_error";
  case 429:
    return "rate_limit_error";
  default:
    return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

static nlohmann::json orNull(std::string_view text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

Reply errorReply(u32 status, std::string_view message, std::string_view code,
                 std::string_view param) {
  nlohmann::json error = {{"message", message},
                          {"type", typeOf(status)},
                          {"param", orNull(param)},
                          {"code", orNull(code)}};
  // Messages may quote what a client sent, which need not be UTF-8.
  return {.status = status,
          .body = nlohmann::json{{"error", std::move(error)}}.dump(
              -1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

} // namespace lathe::runtime::http

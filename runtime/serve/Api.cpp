#include "runtime/serve/Api.h"
#include "runtime/serve/Endpoints.h"
#include "runtime/serve/http/ErrorReply.h"

namespace lathe::runtime::serve {

http::Reply openAiError(const ApiError &error) {
  return http::errorReply(error.status, error.message, error.code, error.param);
}

void replyError(const ServedModel &model, std::string_view callId,
                std::string_view endpoint, http::Responder &responder,
                const ApiError &error, ErrorShape shape) {
  if (model.observer)
    model.observer->onError(callId, endpoint, error.status, error.message);
  http::Reply reply = shape(error);
  // Who is refused for now may well be taken a little later.
  if (error.status == 429 || error.status == 503)
    reply.headers.emplace_back("Retry-After", "1");
  responder.reply(std::move(reply));
}

void addApiRoutes(http::Routes &routes,
                  std::shared_ptr<const ServedModel> model) {
  addOpenAiRoutes(routes, model);
  addOllamaRoutes(routes, model);
  addTokenRoutes(routes, model);
  addProbeRoutes(routes, model);
}

} // namespace lathe::runtime::serve

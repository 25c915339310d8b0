#include "runtime/serve/Endpoints.h"
#include "runtime/serve/Exchange.h"
#include "runtime/serve/Json.h"
#include "runtime/serve/openai/OpenAiFormat.h"
#include "runtime/serve/openai/OpenAiRequest.h"

namespace lathe::runtime::serve {

static StreamUsage streamUsageOf(const OpenAiRequest &request) {
  if (!request.includeUsage)
    return StreamUsage::None;
  return request.continuousUsage ? StreamUsage::Each : StreamUsage::Last;
}

/// A handler that reads a body with `Read` and answers in `Shape`.
template <auto Read, typename Shape>
static http::Handler answering(const SharedModel &model) {
  return [model](const http::Request &request, SharedResponder responder) {
    auto body = readJson(request.body);
    auto read = body ? Read(*body, *model)
                     : tl::unexpected(
                           ApiError{400, body.error().message, "invalid_json"});
    if (!read)
      return replyError(*model, request.id, request.path, *responder,
                        read.error(), openAiError);
    auto format =
        std::make_unique<Shape>(*model, streamUsageOf(*read), read->logProbs);
    startExchange(model, std::move(*read), std::move(format), request,
                  std::move(responder));
  };
}

static nlohmann::ordered_json describe(const ServedModel &model) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "lathe"},
          {"max_model_len", model.engine.context()}};
}

void addOpenAiRoutes(http::Routes &routes, const SharedModel &model) {
  routes.add(
      {"POST", "/v1/chat/completions", answering<readChat, ChatFormat>(model)});
  routes.add({"POST", "/v1/completions",
              answering<readCompletion, CompletionFormat>(model)});
  routes.add({"GET", "/v1/models",
              [model](const http::Request &, SharedResponder responder) {
                nlohmann::ordered_json list = {{"object", "list"},
                                               {"data", {describe(*model)}}};
                responder->reply({.body = list.dump()});
              }});
  routes.add({"GET", "/v1/models/" + model->name,
              [model](const http::Request &, SharedResponder responder) {
                responder->reply({.body = describe(*model).dump()});
              }});
}

} // namespace lathe::runtime::serve

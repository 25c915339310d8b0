#include "runtime/serve/Endpoints.h"

namespace lathe::runtime::serve {

/// Whether the server takes requests.
static void replyReadiness(const ServedModel &model,
                           const http::Request &request,
                           http::Responder &responder) {
  if (model.isDraining)
    return replyError(model, request.id, request.path, responder,
                      {503, "the server is shutting down", "shutting_down"},
                      openAiError);
  responder.reply({.body = R"({"status":"ok"})"});
}

void addProbeRoutes(http::Routes &routes, const SharedModel &model) {
  routes.add({"GET", "/livez",
              [](const http::Request &, SharedResponder responder) {
                responder->reply({.body = R"({"status":"ok"})"});
              },
              http::Access::Open});
  for (const char *path : {"/readyz", "/health"})
    routes.add(
        {"GET", path,
         [model](const http::Request &request, SharedResponder responder) {
           replyReadiness(*model, request, *responder);
         }});
}

} // namespace lathe::runtime::serve

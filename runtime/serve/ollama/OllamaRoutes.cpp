#include "runtime/serve/Endpoints.h"
#include "runtime/serve/Exchange.h"
#include "runtime/serve/Fingerprint.h"
#include "runtime/serve/Json.h"
#include "runtime/serve/Parameters.h"
#include "runtime/serve/UtcTime.h"
#include "runtime/serve/ollama/OllamaFormat.h"
#include "runtime/serve/ollama/OllamaRequest.h"

#include <map>

namespace lathe::runtime::serve {

using Ordered = nlohmann::ordered_json;

/// A handler that reads a body with `Read`.
template <auto Read>
static http::Handler answering(const SharedModel &model, bool isChat) {
  return [=](const http::Request &request, SharedResponder responder) {
    auto body = readJson(request.body);
    auto read = body ? Read(*body, *model)
                     : tl::unexpected(ApiError{400, body.error().message});
    if (!read)
      return replyError(*model, request.id, request.path, *responder,
                        read.error(), ollamaError);
    auto format =
        std::make_unique<OllamaFormat>(*model, isChat, read->logProbs);
    if (read->prompts.empty())
      return responder->reply({.body = format->loaded()});
    startExchange(model, std::move(*read), std::move(format), request,
                  std::move(responder));
  };
}

/// The format that most bytes of the weights have.
static std::string weightFormat(const engine::fb::Manifest &manifest) {
  std::map<std::string, u64> bytes;
  for (const auto *weight : *manifest.weights())
    bytes[weight->format()->str()] += weight->bytes();
  auto most = std::ranges::max_element(
      bytes, {}, [](const auto &entry) { return entry.second; });
  return most == bytes.end() ? "unknown" : most->first;
}

static Ordered detailsOf(const ServedModel &model) {
  const auto &manifest = model.engine.engine().engine().manifest();
  std::string family = manifest.model()->architecture()->str();
  return {{"parent_model", ""},
          {"format", "lathe"},
          {"family", family},
          {"families", {family}},
          {"parameter_size",
           fmt::format("{:.1f}M", f64(manifest.model()->parameters()) * 1e-6)},
          {"quantization_level", weightFormat(manifest)}};
}

static std::string createdAt(const ServedModel &model) {
  return utcTime(std::chrono::system_clock::from_time_t(model.created));
}

static Ordered describe(const ServedModel &model) {
  const auto &engine = model.engine.engine().engine();
  return {{"name", model.name},
          {"model", model.name},
          {"modified_at", createdAt(model)},
          {"size", engine.fileBytes()},
          {"digest", engineHash(engine)},
          {"details", detailsOf(model)}};
}

static Ordered showOf(const ServedModel &model) {
  const auto &manifest = model.engine.engine().engine().manifest();
  const engine::fb::Model &facts = *manifest.model();
  std::string family = facts.architecture()->str();
  return {{"modelfile", ""},
          {"parameters", ""},
          {"template", model.model->tokenizer().spec().chatTemplate},
          {"modified_at", createdAt(model)},
          {"details", detailsOf(model)},
          {"model_info",
           {{"general.architecture", family},
            {"general.parameter_count", facts.parameters()},
            {family + ".context_length", model.engine.context()},
            {family + ".embedding_length", facts.hidden()},
            {family + ".block_count", facts.layers()},
            {family + ".vocab_size", facts.vocab()}}},
          {"capabilities", {"completion"}}};
}

struct ShowRequest {
  std::string model;
  bool verbose = false;
};

static ApiResult<Ordered> show(const json &body, const ServedModel &model) {
  using T = ShowRequest;
  static const std::vector<Parameter<T>> table = {
      {"model", text(&T::model)},
      {"name", text(&T::model)}, // Its older name.
      {"verbose", flag(&T::verbose)},
  };
  T request;
  if (auto read = readParameters<T>(body, table, request); !read)
    return tl::unexpected(read.error());
  if (auto found = checkOllamaName(request.model, model); !found)
    return tl::unexpected(found.error());
  return showOf(model);
}

void addOllamaRoutes(http::Routes &routes, const SharedModel &model) {
  routes.add({"POST", "/api/chat", answering<readOllamaChat>(model, true)});
  routes.add(
      {"POST", "/api/generate", answering<readOllamaGenerate>(model, false)});
  routes.add({"GET", "/api/version",
              [](const http::Request &, SharedResponder responder) {
                responder->reply(
                    {.body = R"({"version":")" LATHE_VERSION R"("})"});
              }});
  // The one model is there and loaded.
  for (const char *path : {"/api/tags", "/api/ps"})
    routes.add({"GET", path,
                [model](const http::Request &, SharedResponder responder) {
                  Ordered list = {
                      {"models", Ordered::array({describe(*model)})}};
                  responder->reply({.body = list.dump()});
                }});
  routes.add({"POST", "/api/show",
              [model](const http::Request &request, SharedResponder responder) {
                auto body = readJson(request.body);
                auto shown =
                    body ? show(*body, *model)
                         : tl::unexpected(ApiError{400, body.error().message});
                if (!shown)
                  return replyError(*model, request.id, request.path,
                                    *responder, shown.error(), ollamaError);
                // A model file may hold anything, and no exception may come of
                // it.
                responder->reply(
                    {.body = shown->dump(-1, ' ', false,
                                         json::error_handler_t::replace)});
              }});
}

} // namespace lathe::runtime::serve

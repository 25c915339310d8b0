#include "runtime/serve/Endpoints.h"
#include "runtime/serve/Json.h"
#include "runtime/serve/Parameters.h"
#include "runtime/serve/Prompts.h"

namespace lathe::runtime::serve {

namespace {

struct TokenizeRequest {
  std::string model;
  std::optional<std::string> prompt;
  json messages = nullptr;
  bool addSpecial = true;
  bool parseSpecial = false;
};

struct DetokenizeRequest {
  std::string model;
  json tokens = nullptr;
  bool showSpecial = false;
};

/// The ids of a text or of a conversation, as the engine would get them.
ApiResult<nlohmann::ordered_json> tokenize(const json &body,
                                           const ServedModel &model) {
  using T = TokenizeRequest;
  static const std::vector<Parameter<T>> table = {
      {"model", text(&T::model)},
      {"prompt", text(&T::prompt)},
      {"messages", raw(&T::messages)},
      {"add_special_tokens", flag(&T::addSpecial)},
      {"parse_special", flag(&T::parseSpecial)},
  };
  T request;
  if (auto read = readParameters<T>(body, table, request); !read)
    return tl::unexpected(read.error());
  if (request.prompt.has_value() == !request.messages.is_null())
    return refuse("prompt",
                  "either 'prompt' (a string) or 'messages' is "
                  "needed",
                  "missing_parameter");
  std::vector<i32> ids;
  if (request.prompt) {
    auto encoded = model.model->tokenizer().encode(
        *request.prompt, {.addSpecial = request.addSpecial,
                          .parseSpecial = request.parseSpecial});
    if (!encoded)
      return tl::unexpected(toApiError(encoded.error(), "prompt"));
    ids = std::move(*encoded);
  } else {
    auto prompt = readMessages(request.messages, *model.model);
    if (!prompt)
      return tl::unexpected(prompt.error());
    ids = std::move(prompt->ids);
  }
  return nlohmann::ordered_json{{"tokens", ids},
                                {"count", ids.size()},
                                {"max_model_len", model.engine.context()}};
}

ApiResult<nlohmann::ordered_json> detokenize(const json &body,
                                             const ServedModel &model) {
  using T = DetokenizeRequest;
  static const std::vector<Parameter<T>> table = {
      {"model", text(&T::model)},
      {"tokens", raw(&T::tokens)},
      {"show_special", flag(&T::showSpecial)},
  };
  T request;
  if (auto read = readParameters<T>(body, table, request); !read)
    return tl::unexpected(read.error());
  auto ids = idsOf(request.tokens);
  if (!ids)
    return refuse("tokens", "'tokens' must be a list of token ids");
  for (i32 id : *ids)
    if (u32(id) >= model.engine.vocab())
      return refuse("tokens",
                    fmt::format("token {} is not in the vocabulary of {}", id,
                                model.engine.vocab()));
  return nlohmann::ordered_json{
      {"prompt", model.model->tokenizer().decode(
                     *ids, {.showSpecial = request.showSpecial})}};
}

/// What clients with the chat's text in hand need to know (vLLM's, lm-eval's).
nlohmann::ordered_json describeTokenizer(const TokenizerSpec &spec) {
  auto text = [&](i32 id) -> nlohmann::ordered_json {
    if (id == kNoToken)
      return nullptr;
    return spec.tokens[id];
  };
  nlohmann::ordered_json info = {{"bos_token", text(spec.bosId)},
                                 {"eos_token", text(spec.eosId)},
                                 {"pad_token", text(spec.padId)},
                                 {"unk_token", text(spec.unkId)}};
  info["chat_template"] = nullptr;
  if (!spec.chatTemplate.empty())
    info["chat_template"] = spec.chatTemplate;
  return info;
}

/// A model file may hold anything, and no exception may come of it.
std::string dumpAny(const nlohmann::ordered_json &value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

template <auto Make> http::Handler replying(const SharedModel &model) {
  return [model](const http::Request &request, SharedResponder responder) {
    auto body = readJson(request.body);
    auto made = body ? Make(*body, *model)
                     : tl::unexpected(
                           ApiError{400, body.error().message, "invalid_json"});
    if (!made)
      return replyError(*model, request.id, request.path, *responder,
                        made.error(), openAiError);
    responder->reply({.body = made->dump()});
  };
}

} // namespace

void addTokenRoutes(http::Routes &routes, const SharedModel &model) {
  routes.add({"POST", "/tokenize", replying<tokenize>(model)});
  routes.add({"POST", "/detokenize", replying<detokenize>(model)});
  routes.add({"GET", "/tokenizer_info",
              [model](const http::Request &, SharedResponder responder) {
                responder->reply({.body = dumpAny(describeTokenizer(
                                      model->model->tokenizer().spec()))});
              }});
}

} // namespace lathe::runtime::serve

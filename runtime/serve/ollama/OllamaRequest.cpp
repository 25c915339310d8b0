#include "runtime/serve/ollama/OllamaRequest.h"
#include "runtime/serve/Parameters.h"
#include "runtime/serve/Prompts.h"

namespace lathe::runtime::serve {

namespace {

using R = OllamaRequest;
using Table = std::vector<Parameter<R>>;

Complaint readSeed(const json &value, R &request) {
  if (!value.is_number_integer())
    return "must be a whole number of 64 bits";
  if (value != -1)
    request.seed = value.get<u64>();
  return std::nullopt;
}

Complaint readLimit(const json &value, R &request) {
  auto given = wholeOf(value, -2, 1 << 30);
  if (!given)
    return "must be a whole number; up to 0 is no limit";
  if (*given > 0)
    request.maxTokens = u32(*given);
  return std::nullopt;
}

Complaint readKeepAlive(const json &value, R &) {
  return value.is_string() || value.is_number()
             ? Complaint()
             : "must be a duration, such as \"5m\", or a number of seconds";
}

/// How the server does its work, which is decided at its start and changes no
/// answer.
Complaint readHint(const json &value, R &) {
  return value.is_number() || value.is_boolean()
             ? Complaint()
             : "must be a number, true or false";
}

const Table &optionsTable() {
  auto sampling = [](auto field) { return inside(&R::sampling, field); };
  using S = SamplerOptions;
  static const Table table = {
      {"temperature", number(sampling(&S::temperature), 0, 1e6)},
      {"top_k", countOrOff(sampling(&S::topK))},
      {"top_p", share(sampling(&S::topP))},
      {"min_p", number(sampling(&S::minP), 0, 0.9999)},
      {"repeat_penalty", number(sampling(&S::repetitionPenalty), 0.01, 100)},
      {"presence_penalty", number(sampling(&S::presencePenalty), -100, 100)},
      {"frequency_penalty", number(sampling(&S::frequencyPenalty), -100, 100)},
      {"repeat_last_n", whole<i64>(&R::penaltyWindow, -1, 1 << 30)},
      {"seed", readSeed},
      {"num_predict", readLimit},
      {"stop", strings(&R::stops)},
      {"num_ctx", whole<i64>(&R::context, 1, 1 << 30)},
      {"numa", readHint},
      {"num_batch", readHint},
      {"num_gpu", readHint},
      {"main_gpu", readHint},
      {"low_vram", readHint},
      {"use_mmap", readHint},
      {"use_mlock", readHint},
      {"num_thread", readHint},
      refused<R>("num_keep", {0}),
      refused<R>("f16_kv", {true}),
      refused<R>("logits_all", {false}),
      refused<R>("vocab_only", {false}),
      refused<R>("embedding_only", {false}),
      refused<R>("tfs_z", {1}),
      refused<R>("typical_p", {1}),
      refused<R>("mirostat", {0}),
      // Mirostat's own, which say nothing without it.
      {"mirostat_tau", readHint},
      {"mirostat_eta", readHint},
      refused<R>("penalize_newline", {true}),
  };
  return table;
}

/// What both endpoints know.
Table sharedTable() {
  return {
      {"model", text(&R::model)},
      {"stream", flag(&R::stream)},
      {"keep_alive", readKeepAlive},
      {"logprobs", flag(&R::logProbs)},
      {"top_logprobs", whole<u32>(&R::topLogProbs, 0, 20)},
      // Read by readShared().
      {"options",
       [](const json &value, R &) -> Complaint {
         return value.is_object() ? Complaint() : "must be an object";
       }},
      refused<R>("format", {""}),
      refused<R>("think", {false}),
      refused<R>("truncate", {false}),
      refused<R>("shift", {false}),
  };
}

Table chatTable() {
  Table table = sharedTable();
  table.push_back({"messages", raw(&R::messages)});
  table.push_back(refused<R>("tools", {json::array()}));
  return table;
}

Table generateTable() {
  Table table = sharedTable();
  const Table own = {
      {"prompt", text(&R::prompt)},
      {"system", text(&R::system)},
      {"raw", flag(&R::raw)},
      refused<R>("suffix", {""}),
      refused<R>("template", {""}),
      refused<R>("context", {json::array()}),
      refused<R>("images", {json::array()}),
      refused<R>("width"),
      refused<R>("height"),
      refused<R>("steps"),
  };
  table.insert(table.end(), own.begin(), own.end());
  return table;
}

ApiResult<R> readShared(const json &body, const Table &table,
                        const ServedModel &model) {
  R request;
  // Ollama's defaults.
  request.stream = true;
  request.sampling = {
      .temperature = 0.8f, .topK = 40, .topP = 0.9f, .repetitionPenalty = 1.1f};
  if (auto read = readParameters<R>(body, table, request); !read)
    return tl::unexpected(read.error());
  if (auto found = checkOllamaName(request.model, model); !found)
    return tl::unexpected(found.error());
  if (auto options = body.find("options");
      options != body.end() && !options->is_null())
    if (auto read =
            readParameters<R>(*options, optionsTable(), request, "options.");
        !read)
      return tl::unexpected(read.error());
  if (request.penaltyWindow == 0) {
    request.sampling.repetitionPenalty = 1;
    request.sampling.presencePenalty = 0;
    request.sampling.frequencyPenalty = 0;
  }
  request.sampling.penaltyWindow = u32(std::max<i64>(request.penaltyWindow, 0));
  if (request.context && *request.context > model.engine.context())
    return refuse("options.num_ctx",
                  fmt::format("'options.num_ctx' is {}; this server has a "
                              "context of {}",
                              *request.context, model.engine.context()));
  if (request.topLogProbs != 0 && !request.logProbs)
    return refuse("top_logprobs",
                  "'top_logprobs' is only allowed with 'logprobs'");
  return request;
}

} // namespace

ApiResult<void> checkOllamaName(const std::string &name,
                                const ServedModel &model) {
  if (name.empty())
    return refuse("model", "'model' is missing", "missing_parameter");
  if (name != model.name && name != model.name + ":latest")
    return tl::unexpected(ApiError{
        404,
        fmt::format("model {} not found; this server has {}",
                    runtime::quoted(name), runtime::quoted(model.name)),
        "model_not_found", "model"});
  return {};
}

ApiResult<R> readOllamaChat(const json &body, const ServedModel &model) {
  static const Table table = chatTable();
  auto request = readShared(body, table, model);
  bool isEmpty = request && (request->messages.is_null() ||
                             request->messages == json::array());
  if (!request || isEmpty)
    return request;
  auto prompt = readMessages(request->messages, *model.model);
  if (!prompt)
    return tl::unexpected(prompt.error());
  request->prompts.push_back(std::move(*prompt));
  return request;
}

ApiResult<R> readOllamaGenerate(const json &body, const ServedModel &model) {
  static const Table table = generateTable();
  auto request = readShared(body, table, model);
  if (!request || request->prompt.empty())
    return request;
  // A model without a template continues the text, as Ollama's do.
  bool isRaw = request->raw || !model.model->hasChatTemplate();
  if (isRaw && !request->system.empty())
    return refuse("system", "'system' needs a chat template: this model has "
                            "none, or 'raw' is set");
  json messages = json::array();
  if (!request->system.empty())
    messages.push_back({{"role", "system"}, {"content", request->system}});
  messages.push_back({{"role", "user"}, {"content", request->prompt}});
  auto prompt =
      isRaw ? encodeText(request->prompt, true, model.model->tokenizer())
            : readMessages(messages, *model.model);
  if (!prompt)
    return tl::unexpected(prompt.error());
  request->prompts.push_back(std::move(*prompt));
  return request;
}

} // namespace lathe::runtime::serve

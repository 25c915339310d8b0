#include "runtime/serve/openai/OpenAiRequest.h"
#include "runtime/serve/Parameters.h"
#include "runtime/serve/Prompts.h"

#include <charconv>
#include <cmath>

namespace lathe::runtime::serve {

namespace {

using Table = std::vector<Parameter<OpenAiRequest>>;

Complaint readBias(const json &value, OpenAiRequest &request) {
  static const char *what =
      "must be an object from token ids to numbers from -100 to 100";
  if (!value.is_object())
    return what;
  for (const auto &[key, bias] : value.items()) {
    i32 id = 0;
    const char *end = key.data() + key.size();
    auto [rest, error] = std::from_chars(key.data(), end, id);
    if (error != std::errc() || rest != end || id < 0 || !bias.is_number() ||
        !(std::abs(bias.get<f64>()) <= 100))
      return what;
    request.sampling.bias.emplace_back(id, bias.get<f32>());
  }
  return std::nullopt;
}

Complaint readStopTokens(const json &value, OpenAiRequest &request) {
  constexpr size_t most = 128;
  auto ids =
      value.is_array() && value.size() <= most ? idsOf(value) : std::nullopt;
  if (!ids)
    return fmt::format("must be a list of at most {} token ids", most);
  request.stopTokens = std::move(*ids);
  return std::nullopt;
}

Complaint readSeed(const json &value, OpenAiRequest &request) {
  if (!value.is_number_integer())
    return "must be a whole number of 64 bits";
  request.seed = value.get<u64>();
  return std::nullopt;
}

Complaint readStreamOptions(const json &value, OpenAiRequest &request) {
  static const Table table = {
      {"include_usage", flag(&OpenAiRequest::includeUsage)},
      {"continuous_usage_stats", flag(&OpenAiRequest::continuousUsage)},
      refused<OpenAiRequest>("include_obfuscation", {false})};
  if (!value.is_object())
    return "must be an object";
  request.hasStreamOptions = true;
  if (auto read = readParameters<OpenAiRequest>(value, table, request); !read)
    return "has a wrong value: " + read.error().message;
  return std::nullopt;
}

/// What both endpoints know.
Table sharedTable() {
  using R = OpenAiRequest;
  return {
      {"model", text(&R::model)},
      {"n", whole<u32>(&R::answers, 1, 128)},
      {"stream", flag(&R::stream)},
      {"stream_options", readStreamOptions},
      {"stop", strings(&R::stops)},
      {"seed", readSeed},
      {"temperature",
       number(inside(&R::sampling, &SamplerOptions::temperature), 0, 2)},
      {"top_p", share(inside(&R::sampling, &SamplerOptions::topP))},
      {"presence_penalty",
       number(inside(&R::sampling, &SamplerOptions::presencePenalty), -2, 2)},
      {"frequency_penalty",
       number(inside(&R::sampling, &SamplerOptions::frequencyPenalty), -2, 2)},
      {"logit_bias", readBias},
      {"user", readRemark<R>},
      // vLLM's.
      {"min_p", number(inside(&R::sampling, &SamplerOptions::minP), 0, 0.9999)},
      {"top_k", countOrOff(inside(&R::sampling, &SamplerOptions::topK))},
      {"repetition_penalty",
       number(inside(&R::sampling, &SamplerOptions::repetitionPenalty), 0.01,
              100)},
      {"ignore_eos", flag(&R::ignoreEnd)},
      {"stop_token_ids", readStopTokens},
      {"include_stop_str_in_output", flag(&R::includeStop)},
      {"priority", whole<i32>(&R::priority, -1000, 1000)},
      {"cache_salt", text(&R::cacheSalt)},
  };
}

Table chatTable() {
  using R = OpenAiRequest;
  Table table = sharedTable();
  const Table own = {
      {"messages", raw(&R::messages)},
      {"max_tokens", whole<u32>(&R::maxTokens, 1, 1 << 30)},
      {"max_completion_tokens",
       whole<u32>(&R::maxCompletionTokens, 1, 1 << 30)},
      {"logprobs", flag(&R::logProbs)},
      {"top_logprobs", whole<u32>(&R::topLogProbs, 0, 20)},
      // They say who asks; the prefix cache finds what is alike by itself.
      {"safety_identifier", readRemark<R>},
      {"prompt_cache_key", readRemark<R>},
      refused<R>("audio"),
      refused<R>("function_call", {"none", "auto"}),
      refused<R>("functions", {json::array()}),
      refused<R>("metadata", {json::object()}),
      refused<R>("modalities", {json::array({"text"})}),
      refused<R>("moderation"),
      refused<R>("parallel_tool_calls", {true}),
      refused<R>("prediction"),
      refused<R>("prompt_cache_options", {json::object()}),
      refused<R>("prompt_cache_retention", {"in_memory"}),
      refused<R>("reasoning_effort", {"none"}),
      refused<R>("response_format", {json{{"type", "text"}}}),
      refused<R>("service_tier", {"auto", "default"}),
      refused<R>("store", {false}),
      refused<R>("tool_choice", {"none", "auto"}),
      refused<R>("tools", {json::array()}),
      refused<R>("verbosity", {"medium"}),
      refused<R>("web_search_options"),
  };
  table.insert(table.end(), own.begin(), own.end());
  return table;
}

Table completionTable() {
  using R = OpenAiRequest;
  Table table = sharedTable();
  const Table own = {
      {"prompt", raw(&R::prompt)},
      {"max_tokens", whole<u32>(&R::maxTokens, 0, 1 << 30)},
      {"logprobs", whole<u32>(&R::completionLogProbs, 0, 20)},
      {"echo", flag(&R::echo)},
      {"best_of", whole<u32>(&R::bestOf, 1, 128)},
      {"parse_special", flag(&R::parseSpecial)},
      refused<R>("suffix", {""}),
  };
  table.insert(table.end(), own.begin(), own.end());
  return table;
}

ApiResult<OpenAiRequest> readShared(const json &body, const Table &table,
                                    const ServedModel &model) {
  OpenAiRequest request;
  // OpenAI's defaults, where they are not the engine's.
  request.sampling.temperature = 1;
  request.sampling.penaltyWindow = 0;
  if (auto read = readParameters<OpenAiRequest>(body, table, request); !read)
    return tl::unexpected(read.error());
  if (!request.model.empty() && request.model != model.name)
    return tl::unexpected(
        ApiError{404,
                 fmt::format("the model {} is not served here; {} is",
                             runtime::quoted(request.model),
                             runtime::quoted(model.name)),
                 "model_not_found", "model"});
  if (request.hasStreamOptions && !request.stream)
    return refuse("stream_options",
                  "'stream_options' is only allowed with 'stream'");
  return request;
}

} // namespace

ApiResult<OpenAiRequest> readChat(const json &body, const ServedModel &model) {
  static const Table table = chatTable();
  auto request = readShared(body, table, model);
  if (!request)
    return request;
  if (request->maxCompletionTokens) {
    if (request->maxTokens &&
        *request->maxTokens != *request->maxCompletionTokens)
      return refuse("max_tokens", "'max_tokens' and 'max_completion_tokens' "
                                  "say the same and must not differ");
    request->maxTokens = request->maxCompletionTokens;
  }
  if (request->topLogProbs != 0 && !request->logProbs)
    return refuse("top_logprobs",
                  "'top_logprobs' is only allowed with 'logprobs'");
  auto prompt = readMessages(request->messages, *model.model);
  if (!prompt)
    return tl::unexpected(prompt.error());
  request->prompts.push_back(std::move(*prompt));
  return request;
}

ApiResult<OpenAiRequest> readCompletion(const json &body,
                                        const ServedModel &model) {
  static const Table table = completionTable();
  auto request = readShared(body, table, model);
  if (!request)
    return request;
  if (!request->maxTokens)
    request->maxTokens = 16;
  if (request->bestOf && *request->bestOf != request->answers)
    return refuse("best_of", "'best_of' other than 'n' is not supported",
                  "unsupported_parameter");
  request->logProbs = request->completionLogProbs.has_value();
  request->topLogProbs = request->completionLogProbs.value_or(0);
  auto prompts = readPrompts(request->prompt, request->parseSpecial,
                             model.model->tokenizer());
  if (!prompts)
    return tl::unexpected(prompts.error());
  request->prompts = std::move(*prompts);
  return request;
}

} // namespace lathe::runtime::serve

#include "runtime/serve/RecordedAnswer.h"

#include "runtime/support/MappedFile.h"
#include "runtime/support/Quote.h"
#include "runtime/support/Sha256.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

namespace lathe::runtime::serve {

using Json = nlohmann::ordered_json;

static constexpr std::array endNames = {"stop", "length", "cancelled",
                                        "deadline", "failed"};

std::string_view nameOf(EndReason reason) { return endNames[u32(reason)]; }

std::string saltDigest(std::string_view salt) {
  if (salt.empty())
    return {};
  std::span bytes(reinterpret_cast<const u8 *>(salt.data()), salt.size());
  return Sha256::toHex(Sha256::digest(bytes)).substr(0, 16);
}

std::string toLine(const RecordedAnswer &answer) {
  const SamplerOptions &sampling = answer.sampling;
  Json bias = Json::array();
  for (auto [token, value] : sampling.bias)
    // JSON has no infinity: null rules a token out.
    bias.push_back({token, std::isinf(value) ? Json() : Json(value)});
  Json line = {
      {"time", answer.time},
      {"request_id", answer.callId},
      {"endpoint", answer.endpoint},
      {"prompt_index", answer.promptIndex},
      {"branch", answer.branch},
      {"branches", answer.branches},
      {"model", answer.model},
      {"engine", answer.engineHash},
      {"target", answer.target},
      {"sampling",
       {{"temperature", sampling.temperature},
        {"top_k", sampling.topK},
        {"top_p", sampling.topP},
        {"min_p", sampling.minP},
        {"repetition_penalty", sampling.repetitionPenalty},
        {"presence_penalty", sampling.presencePenalty},
        {"frequency_penalty", sampling.frequencyPenalty},
        {"penalty_window", sampling.penaltyWindow},
        {"bias", std::move(bias)},
        {"seed", sampling.seed}}},
      {"max_tokens", answer.maxTokens},
      {"stop_tokens", answer.stopTokens},
      {"stop_strings", answer.stopStrings},
      {"cache_salt", answer.saltDigest},
      {"finish", nameOf(answer.finish)},
      {"prompt", answer.prompt},
      {"answer", answer.answer},
  };
  if (answer.promptText)
    line["prompt_text"] = *answer.promptText;
  if (answer.answerText)
    line["answer_text"] = *answer.answerText;
  // Text may hold bytes that are no UTF-8.
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

namespace {

/// Takes fields out of an object and keeps the first error.
class Fields {
public:
  explicit Fields(const Json &object) : object(object) {}

  void read(const char *name, std::string &into) {
    if (const Json *value = find(name, &Json::is_string, "a string"))
      into = value->get<std::string>();
  }

  void read(const char *name, f32 &into) {
    if (const Json *value = find(name, &Json::is_number, "a number"))
      into = value->get<f32>();
  }

  template <typename T>
    requires std::is_unsigned_v<T>
  void read(const char *name, T &into) {
    const Json *value =
        find(name, &Json::is_number_unsigned, "a number from 0 on");
    if (value && value->get<u64>() > std::numeric_limits<T>::max())
      refuse(name, "a smaller number");
    else if (value)
      into = value->get<T>();
  }

  void read(const char *name, std::vector<i32> &into) {
    const Json *value = find(name, &Json::is_array, "a list of ids");
    if (!value)
      return;
    for (const Json &id : *value) {
      if (!isId(id))
        return refuse(name, "a list of ids");
      into.push_back(id.get<i32>());
    }
  }

  void read(const char *name, std::vector<std::pair<i32, f32>> &into) {
    const Json *value = find(name, &Json::is_array, "a list of pairs");
    if (!value)
      return;
    for (const Json &pair : *value) {
      if (!pair.is_array() || pair.size() != 2 || !isId(pair[0]) ||
          !(pair[1].is_number() || pair[1].is_null()))
        return refuse(name, "a list of an id and a number each");
      into.emplace_back(pair[0].get<i32>(),
                        pair[1].is_null()
                            ? -std::numeric_limits<f32>::infinity()
                            : pair[1].get<f32>());
    }
  }

  void read(const char *name, std::optional<std::string> &into) {
    if (object.contains(name))
      read(name, into.emplace());
  }

  void refuse(const char *name, std::string_view expected) {
    if (!error)
      error = Error{ErrorKind::InvalidInput,
                    fmt::format("\"{}\" is missing or not {}", name, expected)};
  }

  std::optional<Error> error;

private:
  const Json *find(const char *name, bool (Json::*isRight)() const,
                   std::string_view expected) {
    auto found = object.find(name);
    if (found != object.end() && ((*found).*isRight)())
      return &*found;
    refuse(name, expected);
    return nullptr;
  }

  static bool isId(const Json &value) {
    return value.is_number_unsigned() &&
           value.get<u64>() <= u64(std::numeric_limits<i32>::max());
  }

  const Json &object;
};

} // namespace

Result<RecordedAnswer> fromLine(std::string_view line) {
  Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    return fail(ErrorKind::NotFound, "the line is no whole JSON object");
  RecordedAnswer answer;
  Fields fields(object);
  fields.read("time", answer.time);
  fields.read("request_id", answer.callId);
  fields.read("endpoint", answer.endpoint);
  fields.read("prompt_index", answer.promptIndex);
  fields.read("branch", answer.branch);
  fields.read("branches", answer.branches);
  fields.read("model", answer.model);
  fields.read("engine", answer.engineHash);
  fields.read("target", answer.target);
  fields.read("max_tokens", answer.maxTokens);
  fields.read("stop_tokens", answer.stopTokens);
  fields.read("stop_strings", answer.stopStrings);
  fields.read("cache_salt", answer.saltDigest);
  fields.read("prompt", answer.prompt);
  fields.read("answer", answer.answer);
  fields.read("prompt_text", answer.promptText);
  fields.read("answer_text", answer.answerText);
  std::string finish;
  fields.read("finish", finish);
  auto reason = std::ranges::find(endNames, finish);
  if (reason == endNames.end())
    fields.refuse("finish", "an end that is known here");
  else
    answer.finish = EndReason(reason - endNames.begin());
  Json none = Json::object();
  auto sampling = object.find("sampling");
  Fields options(sampling != object.end() && sampling->is_object() ? *sampling
                                                                   : none);
  SamplerOptions &into = answer.sampling;
  options.read("temperature", into.temperature);
  options.read("top_k", into.topK);
  options.read("top_p", into.topP);
  options.read("min_p", into.minP);
  options.read("repetition_penalty", into.repetitionPenalty);
  options.read("presence_penalty", into.presencePenalty);
  options.read("frequency_penalty", into.frequencyPenalty);
  options.read("penalty_window", into.penaltyWindow);
  options.read("bias", into.bias);
  options.read("seed", into.seed);
  for (auto &error : {fields.error, options.error})
    if (error)
      return tl::unexpected<Error>(*error);
  return answer;
}

Result<Recording> readRecording(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file)
    return failFrom(file);
  std::string_view text(reinterpret_cast<const char *>(file->bytes().data()),
                        file->size());
  Recording recording;
  for (u64 number = 1; !text.empty(); ++number) {
    size_t end = text.find('\n');
    bool isTorn = end == text.npos;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(isTorn ? text.size() : end + 1);
    if (line.empty())
      continue;
    auto answer = fromLine(line);
    if (answer)
      recording.answers.push_back({number, std::move(*answer)});
    else if (answer.error().kind == ErrorKind::NotFound)
      recording.tornLines.push_back(number);
    else
      return failFrom(answer,
                      fmt::format("{}, line {}", displayPath(path), number));
  }
  if (recording.answers.empty())
    return fail(ErrorKind::InvalidInput,
                "{} holds no recorded answer; `lathe serve --record FILE` "
                "makes recordings",
                displayPath(path));
  return recording;
}

} // namespace lathe::runtime::serve

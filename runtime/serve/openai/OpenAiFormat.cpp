#include "runtime/serve/openai/OpenAiFormat.h"
#include "runtime/serve/Json.h"

#include <chrono>
#include <iterator>
#include <random>

namespace lathe::runtime::serve {

/// Unlike any other's, of this server and of others.
static std::string makeId(std::string_view kind) {
  std::random_device device;
  return fmt::format("{}-{:08x}{:08x}{:08x}", kind, device(), device(),
                     device());
}

OpenAiFormat::OpenAiFormat(const ServedModel &model, std::string_view kind,
                           std::string_view object,
                           std::string_view chunkObject,
                           StreamUsage streamUsage)
    : tokenizer(model.model->tokenizer()), object(object),
      streamUsage(streamUsage) {
  i64 now = std::chrono::system_clock::now().time_since_epoch() /
            std::chrono::seconds(1);
  frame = fmt::format(R"("id":"{}","created":{},"model":)", makeId(kind), now);
  appendString(frame, model.name);
  frame += R"(,"system_fingerprint":)";
  appendString(frame, model.fingerprint);
  eventHead = "data: " + head(chunkObject);
}

std::string OpenAiFormat::head(std::string_view objectName) const {
  return fmt::format(R"({{"object":"{}",{},"choices":[)", objectName, frame);
}

void OpenAiFormat::openEvent(std::string &out, const Progress &at) const {
  out += eventHead;
  fmt::format_to(std::back_inserter(out), R"({{"index":{},)", at.choice);
}

void OpenAiFormat::closeEvent(std::string &out, const Progress &at,
                              std::string_view finish) const {
  out += R"(,"finish_reason":)";
  out += finish;
  out += "}]";
  if (streamUsage == StreamUsage::Last)
    out += R"(,"usage":null)";
  if (streamUsage == StreamUsage::Each)
    fmt::format_to(std::back_inserter(out),
                   R"(,"usage":{{"prompt_tokens":{},"completion_tokens":{},)"
                   R"("total_tokens":{}}})",
                   at.promptTokens, at.answerTokens,
                   u64(at.promptTokens) + at.answerTokens);
  out += "}\n\n";
}

static std::string_view finishOf(bool isStop) {
  return isStop ? "\"stop\"" : "\"length\"";
}

static void appendUsage(std::string &out, const Usage &usage) {
  fmt::format_to(
      std::back_inserter(out),
      R"("usage":{{"prompt_tokens":{},"completion_tokens":{},)"
      R"("total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}}})",
      usage.promptTokens, usage.answerTokens,
      u64(usage.promptTokens) + usage.answerTokens, usage.cachedTokens);
}

std::string OpenAiFormat::whole(std::span<const Choice> choices,
                                const Usage &usage) {
  std::string out = head(object);
  for (u32 i = 0; i < choices.size(); ++i) {
    fmt::format_to(std::back_inserter(out), R"({}{{"index":{},)",
                   i == 0 ? "" : ",", i);
    appendChoice(out, choices[i]);
    out += R"(,"finish_reason":)";
    out += finishOf(choices[i].isStop);
    out += '}';
  }
  out += "],";
  appendUsage(out, usage);
  out += '}';
  return out;
}

void OpenAiFormat::end(std::string &out, const Progress &at, bool isStop) {
  openEvent(out, at);
  appendEmpty(out);
  closeEvent(out, at, finishOf(isStop));
}

void OpenAiFormat::close(std::string &out, const Usage &usage) {
  if (streamUsage != StreamUsage::None) {
    out += eventHead;
    out += "],";
    appendUsage(out, usage);
    out += "}\n\n";
  }
  out += "data: [DONE]\n\n";
}

void OpenAiFormat::fail(std::string &out, const ApiError &error) {
  out += "data: " + openAiError(error).body + "\n\ndata: [DONE]\n\n";
}

} // namespace lathe::runtime::serve

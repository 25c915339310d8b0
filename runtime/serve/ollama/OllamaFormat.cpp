#include "runtime/serve/ollama/OllamaFormat.h"
#include "runtime/serve/Json.h"
#include "runtime/serve/TokenJson.h"
#include "runtime/serve/UtcTime.h"

#include <chrono>
#include <iterator>

namespace lathe::runtime::serve {

http::Reply ollamaError(const ApiError &error) {
  std::string body = "{\"error\":";
  appendString(body, error.message);
  body += '}';
  return {.status = error.status, .body = std::move(body)};
}

OllamaFormat::OllamaFormat(const ServedModel &model, bool isChat, bool logProbs)
    : tokenizer(model.model->tokenizer()), isChat(isChat), logProbs(logProbs) {
  head = "{\"model\":";
  appendString(head, model.name);
  head += fmt::format(R"(,"created_at":"{}",)",
                      utcTime(std::chrono::system_clock::now()));
  head +=
      isChat ? R"("message":{"role":"assistant","content":)" : R"("response":)";
}

void OllamaFormat::appendStart(std::string &out, std::string_view text,
                               std::span<const TokenEntry> entries) {
  out += head;
  appendString(out, text);
  if (isChat)
    out += '}';
  if (logProbs && !entries.empty()) {
    out += R"(,"logprobs":)";
    appendEntries(out, tokenizer, entries);
  }
}

/// Nanoseconds from one instant to a later one; 0 if either is not known.
static Instant between(Instant from, Instant to) {
  return from != 0 && to > from ? to - from : 0;
}

void OllamaFormat::appendLast(std::string &out, const Usage &usage) {
  Instant firstToken = usage.firstToken ? usage.firstToken : usage.ended;
  fmt::format_to(
      std::back_inserter(out),
      R"(,"done":true,"done_reason":"{}","total_duration":{},)"
      R"("load_duration":0,"prompt_eval_count":{},)"
      R"("prompt_eval_duration":{},"eval_count":{},"eval_duration":{}}})",
      isStop ? "stop" : "length", between(usage.submitted, usage.ended),
      usage.promptTokens, between(usage.started, firstToken),
      usage.answerTokens, between(firstToken, usage.ended));
}

std::string OllamaFormat::whole(std::span<const Choice> choices,
                                const Usage &usage) {
  const Choice &only = choices.front();
  isStop = only.isStop;
  std::string out;
  appendStart(out, only.text, only.entries);
  appendLast(out, usage);
  return out;
}

void OllamaFormat::piece(std::string &out, const Progress &,
                         std::string_view text,
                         std::span<const TokenEntry> entries) {
  appendStart(out, text, entries);
  out += ",\"done\":false}\n";
}

void OllamaFormat::end(std::string &, const Progress &, bool stopped) {
  isStop = stopped;
}

void OllamaFormat::close(std::string &out, const Usage &usage) {
  appendStart(out, "", {});
  appendLast(out, usage);
  out += '\n';
}

void OllamaFormat::fail(std::string &out, const ApiError &error) {
  out += ollamaError(error).body + '\n';
}

std::string OllamaFormat::loaded() {
  std::string out;
  appendStart(out, "", {});
  return out + R"(,"done":true,"done_reason":"load"})";
}

} // namespace lathe::runtime::serve

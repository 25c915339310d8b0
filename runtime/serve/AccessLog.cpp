#include "runtime/serve/AccessLog.h"

#include "runtime/serve/UtcTime.h"
#include "runtime/support/Quote.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

namespace lathe::runtime::serve {

/// A client that is gone before its call came so far leaves an entry behind;
/// when there are so many, far more than connections, all are forgotten.
static constexpr u64 mostCalls = 16384;

struct AccessLog::Tokens {
  std::atomic<u64> prompt = 0, completion = 0;
};

class AccessLog::Counter : public RequestObserver {
public:
  explicit Counter(std::shared_ptr<Tokens> tokens)
      : tokens(std::move(tokens)) {}

  void onToken(u32, i32, Instant) override { ++tokens->completion; }
  void onText(u32, std::string_view) override {}
  void onEnd(u32, const End &, const RequestFacts &) override {}

private:
  std::shared_ptr<Tokens> tokens;
};

AccessLog::AccessLog(std::shared_ptr<spdlog::logger> logger, bool isJson)
    : logger(std::move(logger)), isJson(isJson) {}

std::shared_ptr<RequestObserver>
AccessLog::onRequest(const ObservedRequest &request) {
  std::lock_guard lock(mutex);
  if (calls.size() >= mostCalls)
    calls.clear();
  std::shared_ptr<Tokens> &tokens = calls[std::string(request.callId)];
  if (!tokens)
    tokens = std::make_shared<Tokens>();
  tokens->prompt += request.request.prompt.size();
  return std::make_shared<Counter>(tokens);
}

std::shared_ptr<AccessLog::Tokens> AccessLog::take(const std::string &callId) {
  std::lock_guard lock(mutex);
  auto call = calls.find(callId);
  if (call == calls.end())
    return nullptr;
  auto tokens = std::move(call->second);
  calls.erase(call);
  return tokens;
}

static spdlog::level::level_enum levelOf(const http::AccessRecord &record) {
  constexpr std::array<std::string_view, 4> watched = {"/livez", "/readyz",
                                                       "/health", "/metrics"};
  if (record.status >= 500)
    return spdlog::level::warn;
  bool isRoutine = record.status < 400 &&
                   std::ranges::count(watched, record.request.path) != 0;
  return isRoutine ? spdlog::level::debug : spdlog::level::info;
}

void AccessLog::log(const http::AccessRecord &record) {
  const http::Request &request = record.request;
  auto tokens = take(request.id);
  spdlog::level::level_enum level = levelOf(record);
  if (!logger->should_log(level))
    return;
  if (!isJson) {
    std::string text = fmt::format(
        "{} {} {}: {}, {:.0f} ms", runtime::quoted(request.id), request.method,
        runtime::quoted(request.path), record.status, record.seconds * 1e3);
    if (tokens)
      text += fmt::format(", {} + {} tokens", tokens->prompt.load(),
                          tokens->completion.load());
    if (!record.isComplete)
      text += ", client gone";
    logger->log(level, text);
    return;
  }
  auto levelName = spdlog::level::to_string_view(level);
  nlohmann::ordered_json line = {
      {"time", utcTime(std::chrono::system_clock::now())},
      {"level", std::string(levelName.data(), levelName.size())},
      {"request_id", request.id},
      {"method", request.method},
      {"path", request.path},
      {"status", record.status},
      {"duration_seconds", std::round(record.seconds * 1e6) / 1e6},
      {"bytes", record.bytes},
      {"is_complete", record.isComplete}};
  if (tokens) {
    line["prompt_tokens"] = tokens->prompt.load();
    line["completion_tokens"] = tokens->completion.load();
  }
  logger->log(level, line.dump(-1, ' ', false,
                               nlohmann::json::error_handler_t::replace));
}

} // namespace lathe::runtime::serve

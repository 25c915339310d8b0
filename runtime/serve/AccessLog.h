/// \file
/// A line per HTTP request.
#ifndef LATHE_RUNTIME_SERVE_ACCESSLOG_H
#define LATHE_RUNTIME_SERVE_ACCESSLOG_H

#include "runtime/serve/Observer.h"
#include "runtime/serve/http/HttpServer.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace spdlog {
class logger;
} // namespace spdlog

namespace lathe::runtime::serve {

/// Writes what a request was and what became of it: as JSON
///
///   {"time":"2025-01-31T12:00:00.123Z","level":"info","request_id":"…",
///    "method":"POST","path":"/v1/completions","status":200,
///    "duration_seconds":0.81,"bytes":512,"is_complete":true,
///    "prompt_tokens":12,"completion_tokens":34}
///
/// (the tokens only where a prompt was evaluated) or as text. No line has a
/// text that a client sent but the path and its own x-request-id, nor where the
/// client is. Probes and collections of metrics that succeed are of level
/// debug, errors of the server of level warning, all else of level info.
///
/// Any thread.
class AccessLog : public Observer {
public:
  AccessLog(std::shared_ptr<spdlog::logger> logger, bool isJson);

  /// The request is over: HttpOptions::log.
  void log(const http::AccessRecord &record);

  std::shared_ptr<RequestObserver>
  onRequest(const ObservedRequest &request) override;
  void onError(std::string_view, std::string_view, u32,
               std::string_view) override {}

private:
  struct Tokens;
  class Counter;

  /// What is known of a call's tokens; null: none were asked for.
  std::shared_ptr<Tokens> take(const std::string &callId);

  std::shared_ptr<spdlog::logger> logger;
  bool isJson;
  std::mutex mutex;                                     ///< Of the map.
  std::map<std::string, std::shared_ptr<Tokens>> calls; ///< In progress.
};

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_ACCESSLOG_H

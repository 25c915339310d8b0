/// \file
/// Who hears of every request and every token that the API serves: metrics,
/// logs, recordings.
#ifndef LATHE_RUNTIME_SERVE_OBSERVER_H
#define LATHE_RUNTIME_SERVE_OBSERVER_H

#include "runtime/schedule/Request.h"

#include <memory>
#include <string_view>

namespace lathe::runtime::serve {

/// What a client asks the engine for: one prompt with its answers. A call with
/// several prompts is as many of these, with one callId. Views hold during
/// Observer::onRequest().
struct ObservedRequest {
  std::string_view callId;   ///< http::Request::id of the call.
  std::string_view endpoint; ///< Its path: "/v1/completions".
  u32 promptIndex = 0;       ///< Among the prompts of the call.
  bool isStream = false;
  /// Ids, sampler options with the seed that is used, limits, branches.
  const Request &request;
  /// The prompt as it came, or a conversation as JSON; ids have none.
  std::string_view promptText;
  /// Stop strings, and whether the one that ends an answer stays in it.
  std::span<const std::string> stops;
  bool includeStop = false;
};

/// Hears of one request. Calls are in order and short, as RequestSink's; they
/// come on the engine's thread, from submission on.
class RequestObserver {
public:
  virtual ~RequestObserver() = default;

  /// The next token of an answer. `at` is of ServingEngine::now().
  virtual void onToken(u32 branch, i32 token, Instant at) = 0;

  /// What an answer goes on with: whole characters, without stop strings.
  virtual void onText(u32 branch, std::string_view text) = 0;

  /// The one end of an answer; `end` as the client is told: a stop string that
  /// was held back when the answer ended makes it EndReason::Stop.
  virtual void onEnd(u32 branch, const End &end, const RequestFacts &facts) = 0;
};

/// Hears of all requests, on any thread.
class Observer {
public:
  virtual ~Observer() = default;

  /// A request is about to be submitted. Null: nobody is interested.
  virtual std::shared_ptr<RequestObserver>
  onRequest(const ObservedRequest &request) = 0;

  /// A call ends in an HTTP error: a wrong parameter, a full queue, an engine's
  /// error before the first token. After onRequest(), if it came so far; of
  /// requests that were refused by the engine itself no end is told otherwise.
  virtual void onError(std::string_view callId, std::string_view endpoint,
                       u32 status, std::string_view message) = 0;
};

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_OBSERVER_H

/// \file
/// What a scheduler is asked for, and whom it tells.
#ifndef LATHE_RUNTIME_SCHEDULE_REQUEST_H
#define LATHE_RUNTIME_SCHEDULE_REQUEST_H

#include "runtime/sample/Sampler.h"
#include "runtime/schedule/GeneratedToken.h"
#include "runtime/support/Result.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lathe::runtime {

/// Nanoseconds of a scheduler's clock.
using Instant = u64;

/// A prompt, and how to go on from it.
struct Request {
  std::vector<i32> prompt;
  SamplerOptions sampling = {};
  /// Most tokens to generate; 0 only evaluates the prompt.
  u32 maxTokens = ~0u;
  /// Ids that end an answer; they are not part of it.
  std::vector<i32> stopTokens = {};
  /// Answers, n: the b-th is drawn with seed + b.
  u32 branches = 1;
  /// Larger is served first; others catch up by waiting. -1000 to 1000.
  i32 priority = 0;
  /// Later than this, it ends where it is.
  std::optional<Instant> deadline = std::nullopt;
  /// Prompts are only shared among requests of one salt.
  std::string cacheSalt = {};
  /// Give the sink the logits of each answered token.
  bool showLogits = false;
  /// Give the sink the logits of all prompt tokens: none are then taken from
  /// the prefix cache.
  bool showPromptLogits = false;
};

/// Why an answer ended.
enum class EndReason {
  Stop,      ///< A stop token, or the sink's wish.
  Length,    ///< maxTokens, or the context is full.
  Cancelled, ///< Scheduler::cancel().
  Deadline,  ///< The request's deadline has passed.
  Failed,    ///< End::error says how.
};

/// The end of one answer.
struct End {
  EndReason reason = EndReason::Length;
  std::optional<Error> error = std::nullopt;
};

/// Facts of a request, told with its first token or its end.
struct RequestFacts {
  u32 promptTokens = 0;
  u32 cachedTokens = 0; ///< Of the prompt, taken from the prefix cache.
  Instant submitted = 0;
  Instant started = 0; ///< First left the queue; 0: never.
};

/// Hears of one request, on the scheduler's thread. Calls must be short: all
/// requests wait for them.
class RequestSink {
public:
  virtual ~RequestSink() = default;

  /// The logits [vocab] that follow the prompt token at `position`, if the
  /// request shows them; in order.
  virtual void onPromptLogits(u32 /*position*/, std::span<const f32>) {}

  /// The next token of an answer; false ends it (a stop string matched).
  virtual bool onToken(u32 branch, const GeneratedToken &token) = 0;

  /// The one end of an answer. After that of its last branch the request is
  /// forgotten.
  virtual void onEnd(u32 branch, const End &end, const RequestFacts &facts) = 0;
};

using RequestId = u64;

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_REQUEST_H

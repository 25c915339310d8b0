/// \file
/// Makes recorded answers again and compares them, token by token.
#ifndef LATHE_RUNTIME_SERVE_REPLAY_H
#define LATHE_RUNTIME_SERVE_REPLAY_H

#include "runtime/schedule/ServingEngine.h"
#include "runtime/serve/RecordedAnswer.h"

#include <atomic>
#include <functional>
#include <optional>
#include <string>

namespace lathe::runtime::serve {

/// Where an answer first differs from its recording.
struct ReplayDifference {
  u64 line; ///< Of the recording.
  std::string callId;
  u32 promptIndex, branch;
  u32 index;    ///< Of the token in the answer, from 0 on.
  u32 position; ///< Of the token in the sequence, prompt included.
  /// Nothing: the answer's end.
  std::optional<i32> expected, got;
  /// Set if the engine failed instead.
  std::string error;
};

struct ReplayReport {
  u64 answers = 0;   ///< That were made again.
  u64 unchecked = 0; ///< Without a token to compare: cancelled before it.
  u64 tokens = 0;    ///< Compared and equal.
  u64 different = 0; ///< Answers.
  /// Of the first answer, in the recording's order, that differs.
  std::optional<ReplayDifference> first;
  bool wasInterrupted = false;
};

/// Whether an engine is the one that answers were recorded with: bits are only
/// promised for the same engine and ISA layer. Errors: Unsupported, naming the
/// line, both engines or layers and the options that choose them.
Result<void> checkRecordedWith(const Recording &recording,
                               const std::string &engineHash,
                               const std::string &target);

/// Tokens of the longest sequence that a replay evaluates: the least context
/// for an engine that replays.
u32 contextFor(const Recording &recording);

struct ReplayProgress {
  /// Called now and then with answers done, of all; may be null.
  std::function<void(u64 done, u64 total)> update = nullptr;
  /// Ends the replay early when set; may be null.
  const std::atomic<bool> *interrupt = nullptr;
};

/// Submits every answer as a request of its own, the last recorded first, as
/// many at a time as the engine's queue holds, and compares what it makes. Each
/// answer is evaluated beside others, in other steps and after other prefixes
/// than when it was recorded. Errors: those of ServingEngine::submit(), with
/// the line.
Result<ReplayReport> replay(ServingEngine &engine, const Recording &recording,
                            const ReplayProgress &progress = {});

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_REPLAY_H

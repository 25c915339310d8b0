/// \file
/// The same step again and again, with time stamps: what `lathe explain` and
/// the structure test look at.
#ifndef LATHE_RUNTIME_SCHEDULE_TRACEDSTEPS_H
#define LATHE_RUNTIME_SCHEDULE_TRACEDSTEPS_H

#include "runtime/device/CpuExecutor.h"
#include "runtime/device/ThreadTeam.h"
#include "runtime/engine/StepCost.h"
#include "runtime/kv/KvCache.h"
#include "runtime/schedule/LoadedEngine.h"
#include "runtime/schedule/StepProfile.h"
#include "runtime/support/Result.h"

#include <functional>
#include <memory>
#include <vector>

namespace lathe::runtime {

/// Owns some sequences of equal depth, their KV cache, threads and buffers, and
/// evaluates their next rows as often as one likes. One thread at a time.
class TracedSteps {
public:
  struct Options {
    u32 sequences = 1; ///< 1 to maxHeadRows.
    u32 depth = 0;     ///< Tokens of each before the step.
    u32 rows = 1;      ///< Of each in the step; > 0.
    /// Threads of the team; 0: what affinity and cgroup quota allow.
    u32 threads = 0;
  };

  /// Errors: Unsupported (an engine without a KV cache), InvalidInput (an
  /// option out of range, depth and rows past the engine's context), Exhausted
  /// (memory).
  static Result<std::unique_ptr<TracedSteps>>
  create(std::shared_ptr<const LoadedEngine> engine, const Options &options);

  /// Fills the caches up to the depth: evaluates one sequence and copies its
  /// keys and values to the others. `stop`, if not null, sees the tokens done
  /// and ends it early by returning true. To be called once, before run().
  Result<void> prepare(const std::function<bool(u32 done)> &stop = nullptr);

  /// Evaluates the step with the logits of each sequence's last row, traced
  /// into `trace`, whose buffers newTrace() made, and forgets its rows again.
  /// Allocates nothing. Errors as CpuExecutor::step().
  Result<void> run(StepTrace &trace);

  /// A trace with room for this step.
  StepTrace newTrace() const;

  /// What run() evaluates.
  StepShape shape() const;

  u32 threads() const { return team->threads(); }
  /// Barriers between launches that the team has passed so far.
  u32 barriers() { return team->barrier()->generation; }

private:
  TracedSteps() = default;
  Result<void> extendAll(u32 rows);
  void copyCaches();

  std::shared_ptr<const LoadedEngine> engine;
  Options options;
  std::unique_ptr<ThreadTeam> team;
  std::unique_ptr<KvCache> cache;
  std::vector<SequenceCache> sequences;
  std::unique_ptr<CpuExecutor> executor;
  std::vector<i32> tokens; ///< [sequences][rows]
  std::vector<BatchSequence> batch;
  std::vector<u32> headRows;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_TRACEDSTEPS_H

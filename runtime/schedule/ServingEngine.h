/// \file
/// An engine that answers many requests at once, from any thread.
#ifndef LATHE_RUNTIME_SCHEDULE_SERVINGENGINE_H
#define LATHE_RUNTIME_SCHEDULE_SERVINGENGINE_H

#include "runtime/device/CpuExecutor.h"
#include "runtime/device/ThreadTeam.h"
#include "runtime/schedule/DraftEngine.h"
#include "runtime/schedule/LoadedEngine.h"
#include "runtime/schedule/MemoryPlan.h"
#include "runtime/schedule/Scheduler.h"
#include "runtime/speculate/NgramProposer.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace lathe::runtime {

/// Who drafts tokens, if anybody: at most one of the two.
struct DraftWishes {
  /// A proposer that needs no model.
  bool byLookup = false;
  /// A draft model, loaded.
  std::shared_ptr<const LoadedEngine> model = nullptr;
  SpeculationOptions speculation = {};
};

struct ServingOptions {
  /// Threads of the team; 0: what affinity and cgroup quota allow.
  u32 threads = 0;
  /// Most bytes of weights, buffers and KV cache; 0: what is available.
  u64 memoryBytes = 0;
  /// Most tokens of a sequence; 0: the engine's context, or as much of it as
  /// the memory holds, then with a notice.
  u32 context = 0;
  /// Most answers that are evaluated together, > 0.
  u32 maxRunning = 16;
  /// Most requests that wait besides.
  u32 maxWaiting = 256;
  /// Most rows of a step; raised to maxRunning.
  u32 stepRows = 512;
  /// As SchedulerOptions.
  u32 mixedRows = 128;
  bool prefixCache = true;
  /// Poisons freed KV pages (PagePool::Options), for tests.
  bool poisonFreed = false;
  DraftWishes drafts = {};
  MemoryWishNames names = {};
};

/// What has happened so far, and what is the case, a step ago at most.
struct ServingStats {
  SchedulerStats scheduler = {};
  /// Share of the KV pages that requests in progress hold, of the group where
  /// it is largest; pages that only the prefix cache holds count as free. Up to
  /// a tenth of a second old.
  f64 kvUsage = 0;
};

/// Owns a scheduler with its executor, KV cache and threads, and one thread
/// that drives them while there is work. Any thread may call it.
class ServingEngine {
public:
  /// The memory plan covers a draft model. Errors: Unsupported (an engine
  /// without a KV cache), those of MemoryPlan::settleHere() and
  /// DraftEngine::check().
  static Result<std::unique_ptr<ServingEngine>>
  create(std::shared_ptr<const LoadedEngine> engine,
         const ServingOptions &options);

  /// As stop().
  ~ServingEngine();

  /// Ends all requests as cancelled, and refuses further ones. Returns when
  /// their sinks have been told. Not to be called by a sink.
  void stop();

  /// Queues a request. `sink` hears of it on the engine's thread and lives
  /// until the last onEnd(), which may come before this returns. Errors, told
  /// at once and not to the sink: those of Scheduler::submit(), Environment
  /// (after stop()).
  Result<RequestId> submit(Request request, std::shared_ptr<RequestSink> sink);

  /// Ends a request's answers and frees their pages within a step. Ids of ended
  /// requests are ignored.
  void cancel(RequestId id);

  ServingStats stats() const;

  /// Most tokens of a sequence.
  u32 context() const { return scheduler->context(); }
  u32 vocab() const { return executor->vocab(); }
  /// Most answers that are made or waited for at a time.
  u32 capacity() const { return mostAnswers; }
  u32 threads() const { return team->threads(); }
  /// What the memory was divided into, with what was decided for the user.
  const MemoryPlan &memory() const { return settled; }
  const LoadedEngine &engine() const { return *loaded; }
  /// What is odd about the draft model, in one line; usually empty.
  const std::string &warning() const { return draftWarning; }
  /// The clock of deadlines and RequestFacts: monotonic, since some start.
  static Instant now();

private:
  struct Arrival {
    RequestId id;
    Request request;
    std::shared_ptr<RequestSink> sink;
  };

  ServingEngine() = default;
  void work();
  /// Takes what came meanwhile to the scheduler.
  void takeIn(std::vector<Arrival> &arrived, std::vector<RequestId> &cancelled);
  void publish();
  f64 kvUsage() const;

  std::shared_ptr<const LoadedEngine> loaded;
  std::unique_ptr<ThreadTeam> team;
  std::unique_ptr<KvCache> cache;
  std::unique_ptr<CpuExecutor> executor;
  std::unique_ptr<DraftEngine> draft; ///< Null without a draft model.
  NgramProposer lookup;
  std::unique_ptr<Scheduler> scheduler;
  MemoryPlan settled;
  std::string draftWarning;
  u32 mostAnswers = 0; ///< In here at a time.

  mutable std::mutex mutex; ///< Of all below but the thread.
  std::condition_variable wakeUp;
  std::vector<Arrival> arrivals;
  std::vector<RequestId> cancels;
  ServingStats published;
  Instant usageAt = 0; ///< When published.kvUsage was computed.
  RequestId lastId = 0;
  bool ending = false;
  std::thread thread;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_SERVINGENGINE_H

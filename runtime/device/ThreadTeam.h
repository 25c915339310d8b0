/// \file
/// A fixed team of threads that runs one function together, again and again.
#ifndef LATHE_RUNTIME_DEVICE_THREADTEAM_H
#define LATHE_RUNTIME_DEVICE_THREADTEAM_H

#include "kernels/abi/StepArgs.h"
#include "runtime/support/Result.h"

#include <atomic>
#include <memory>
#include <pthread.h>
#include <vector>

namespace lathe::runtime {

/// N threads; the caller of run() is thread 0, the others wait inside.
///
/// A waiting thread spins for about 20 microseconds, then sleeps on a futex: a
/// team that has nothing to do uses no CPU. run() allocates nothing and takes
/// no lock. Workers block all signals, so that handlers run in threads of the
/// program.
///
/// One thread at a time may call run(), not from inside of a task. A forked
/// child must not use its parent's team.
class ThreadTeam {
public:
  struct Options {
    /// Threads including the caller, 1 to maxThreads.
    u32 threads = 1;
    /// Stack of each worker; taken from memory only as far as used.
    u64 stackBytes = u64(1) << 20;
    /// Ties worker i to the i-th CPU of the affinity mask. The caller's thread
    /// is left as it is.
    bool pin = false;
  };
  static constexpr u32 maxThreads = 1024;

  /// Starts the workers. Errors: InvalidInput (thread count), Exhausted (the
  /// system gives no more threads).
  static Result<std::unique_ptr<ThreadTeam>> create(const Options &options);

  /// Ends and joins the workers.
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam &) = delete;
  ThreadTeam &operator=(const ThreadTeam &) = delete;

  /// Called with thread in [0, threads).
  using Task = void (*)(void *context, u32 thread, u32 threads);

  /// Calls `task` once in every thread and returns when all have returned;
  /// what they wrote is visible to the caller.
  void run(Task task, void *context) noexcept;

  /// The same with a callable (thread, threads), which must not throw.
  template <typename Function> void run(Function &&function) noexcept {
    run(
        [](void *context, u32 thread, u32 threads) {
          (*static_cast<std::remove_reference_t<Function> *>(context))(thread,
                                                                       threads);
        },
        static_cast<void *>(std::addressof(function)));
  }

  u32 threads() const { return threadCount; }

  /// The barrier of this team's steps, for StepArgs::barrier.
  StepBarrier *barrier() { return &stepBarrier; }

  /// Pauses in about 20 microseconds on this machine, for StepArgs::spinLimit;
  /// measured once per process.
  static u32 spinLimit();

private:
  struct Worker {
    ThreadTeam *team;
    u32 index;
    pthread_t handle;
  };

  ThreadTeam() = default;
  Result<void> startWorker(const Options &options, u32 index);
  void work(u32 index);

  StepBarrier stepBarrier{};
  u32 threadCount = 1;
  u32 spins = 0;
  std::vector<Worker> workers; ///< Never grows after its threads run.
  Task task = nullptr;         ///< Written before `round` is raised.
  void *context = nullptr;
  bool ending = false;

  /// Each raised on its own cache line: workers poll one, the caller the other.
  alignas(64) std::atomic<u32> round{0};
  std::atomic<u32> sleepingWorkers{0};
  alignas(64) std::atomic<u32> pending{0}; ///< Workers still in the task.
  std::atomic<u32> callerSleeps{0};
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_DEVICE_THREADTEAM_H

#include "runtime/device/ThreadTeam.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lathe::runtime {
namespace {

static_assert(sizeof(std::atomic<u32>) == sizeof(u32) &&
              std::atomic<u32>::is_always_lock_free);

/// Sleeps while `word` holds `expected`; may return early.
void futexWait(std::atomic<u32> &word, u32 expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futexWakeAll(std::atomic<u32> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

/// Waits until `word` differs from `old` and returns the new value. `sleepers`
/// counts the threads that a change must wake: it is raised before the kernel
/// compares `word`, and the changer reads it after its change (all seq_cst),
/// so one of the two sees the other.
u32 awaitChange(std::atomic<u32> &word, u32 old, std::atomic<u32> &sleepers,
                u32 spins) {
  for (u32 i = 0; i < spins; ++i) {
    u32 now = word.load(std::memory_order_acquire);
    if (now != old)
      return now;
    __builtin_ia32_pause();
  }
  sleepers.fetch_add(1);
  u32 now;
  while ((now = word.load()) == old)
    futexWait(word, old);
  sleepers.fetch_sub(1);
  return now;
}

u32 measureSpinLimit() {
  using Clock = std::chrono::steady_clock;
  constexpr u32 pauses = 2000;
  double best = 1e9; // nanoseconds per pause; the least disturbed of a few
  for (int attempt = 0; attempt < 5; ++attempt) {
    auto start = Clock::now();
    for (u32 i = 0; i < pauses; ++i)
      __builtin_ia32_pause();
    std::chrono::duration<double, std::nano> time = Clock::now() - start;
    best = std::min(best, time.count() / pauses);
  }
  constexpr double spinNanoseconds = 20000;
  return u32(std::clamp(spinNanoseconds / std::max(best, 0.1), 50.0, 20000.0));
}

/// The CPUs that this process may run on, ascending; at most CPU_SETSIZE.
std::vector<int> allowedCpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set))
        cpus.push_back(cpu);
  return cpus;
}

} // namespace

u32 ThreadTeam::spinLimit() {
  static const u32 limit = measureSpinLimit();
  return limit;
}

Result<std::unique_ptr<ThreadTeam>> ThreadTeam::create(const Options &options) {
  if (options.threads < 1 || options.threads > maxThreads)
    return fail(ErrorKind::InvalidInput,
                "{} threads asked for; --threads takes 1 to {}",
                options.threads, maxThreads);
  std::unique_ptr<ThreadTeam> team(new ThreadTeam);
  team->threadCount = options.threads;
  team->spins = spinLimit();
  team->workers.reserve(options.threads - 1);
  for (u32 index = 1; index < options.threads; ++index)
    if (auto started = team->startWorker(options, index); !started)
      return failFrom(started);
  return team;
}

Result<void> ThreadTeam::startWorker(const Options &options, u32 index) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  int status = pthread_attr_setstacksize(
      &attributes, std::max<u64>(options.stackBytes, PTHREAD_STACK_MIN));
  if (options.pin) {
    auto cpus = allowedCpus();
    if (!cpus.empty()) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cpus[index % cpus.size()], &set);
      pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    }
  }
  workers.push_back({this, index, {}});
  Worker &worker = workers.back();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (status == 0)
    status = pthread_create(
        &worker.handle, &attributes,
        [](void *argument) -> void * {
          auto *self = static_cast<Worker *>(argument);
          self->team->work(self->index);
          return nullptr;
        },
        &worker);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (status != 0) {
    workers.pop_back();
    return fail(ErrorKind::Exhausted,
                "cannot start thread {} of {}: {}; lower --threads", index + 1,
                options.threads, std::strerror(status));
  }
  pthread_setname_np(worker.handle, "lathe-worker");
  return {};
}

ThreadTeam::~ThreadTeam() {
  ending = true;
  round.fetch_add(1);
  futexWakeAll(round);
  for (Worker &worker : workers)
    pthread_join(worker.handle, nullptr);
}

void ThreadTeam::work(u32 index) {
  u32 seen = 0;
  while (true) {
    seen = awaitChange(round, seen, sleepingWorkers, spins);
    if (ending)
      return;
    task(context, index, threadCount);
    if (pending.fetch_sub(1) == 1 && callerSleeps.load())
      futexWakeAll(pending);
  }
}

void ThreadTeam::run(Task newTask, void *newContext) noexcept {
  if (threadCount > 1) {
    task = newTask;
    context = newContext;
    pending.store(threadCount - 1);
    round.fetch_add(1);
    if (sleepingWorkers.load())
      futexWakeAll(round);
  }
  newTask(newContext, 0, threadCount);
  if (threadCount > 1)
    for (u32 left = pending.load(std::memory_order_acquire); left != 0;)
      left = awaitChange(pending, left, callerSleeps, spins);
}

} // namespace lathe::runtime

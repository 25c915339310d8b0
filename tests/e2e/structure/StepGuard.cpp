#include "tests/e2e/structure/StepGuard.h"

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LATHE_SANITIZED
#endif
#endif

namespace {

std::atomic<bool> isWatching{false};
std::atomic<int> allocations{0};
std::atomic<int> locks{0};

} // namespace

#ifndef LATHE_SANITIZED
// The program's own definitions come before the C library's, for all libraries
// that it loads. glibc keeps its own under these names; what it takes from them
// may be given to its free().
extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static void countAllocation() {
  if (isWatching.load(std::memory_order_relaxed))
    ++allocations;
}

void *malloc(size_t bytes) {
  countAllocation();
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  countAllocation();
  return __libc_calloc(count, bytes);
}
void *realloc(void *old, size_t bytes) {
  countAllocation();
  return __libc_realloc(old, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  countAllocation();
  return __libc_memalign(alignment, bytes);
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  using Function = int (*)(pthread_mutex_t *);
  static auto real =
      reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (isWatching.load(std::memory_order_relaxed))
    ++locks;
  return real(mutex);
}
}
#endif

namespace {

/// What the child tells its parent.
struct Shared {
  std::atomic<int> prepared{0};
  std::atomic<int> finished{0};
  std::atomic<int> workFailed{0};
  std::atomic<int> filterFailed{0};
  std::atomic<int> allocations{0};
  std::atomic<int> locks{0};
  std::atomic<int> systemCall{-1};
};
Shared *shared = nullptr;

void onForbiddenCall(int, siginfo_t *info, void *) {
  shared->systemCall = info->si_syscall;
  _exit(1);
}

/// For all threads of this process, from now on.
bool forbidSystemCalls() {
  struct sigaction action = {};
  action.sa_sigaction = onForbiddenCall;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  constexpr auto load = BPF_LD | BPF_W | BPF_ABS;
  constexpr auto equal = BPF_JMP | BPF_JEQ | BPF_K;
  constexpr auto end = BPF_RET | BPF_K;
  sock_filter filter[] = {
      BPF_STMT(load, offsetof(seccomp_data, arch)),
      BPF_JUMP(equal, AUDIT_ARCH_X86_64, 0, 4),
      BPF_STMT(load, offsetof(seccomp_data, nr)),
      BPF_JUMP(equal, SYS_futex, 3, 0),
      BPF_JUMP(equal, SYS_exit, 2, 0),
      BPF_JUMP(equal, SYS_exit_group, 1, 0),
      BPF_STMT(end, SECCOMP_RET_TRAP),
      BPF_STMT(end, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                 SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

[[noreturn]] void runChild(const std::function<bool()> &prepare,
                           const std::function<bool()> &work) {
  if (!prepare())
    _exit(1);
  shared->prepared = 1;
  if (!forbidSystemCalls()) {
    shared->filterFailed = 1;
    _exit(1);
  }
  isWatching = true;
  bool succeeded = work();
  isWatching = false;
  shared->workFailed = !succeeded;
  shared->allocations = allocations.load();
  shared->locks = locks.load();
  shared->finished = 1;
  _exit(0);
}

} // namespace

bool lathe::tests::countsAllocations() {
#ifdef LATHE_SANITIZED
  return false;
#else
  return true;
#endif
}

lathe::tests::GuardResult
lathe::tests::runGuarded(const std::function<bool()> &prepare,
                         const std::function<bool()> &work) {
  void *page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    return {.failure = "mmap failed"};
  shared = new (page) Shared;
  pid_t child = fork();
  if (child == 0)
    runChild(prepare, work);
  int status = 0;
  waitpid(child, &status, 0);
  GuardResult result;
  result.finished = shared->finished && !shared->workFailed;
  result.allocations = shared->allocations;
  result.locks = shared->locks;
  if (shared->systemCall >= 0)
    result.failure = "system call " + std::to_string(shared->systemCall.load());
  else if (WIFSIGNALED(status))
    // Threads that block SIGSYS are killed by it.
    result.failure =
        "signal " + std::to_string(WTERMSIG(status)) +
        (WTERMSIG(status) == SIGSYS ? ": a system call in a worker thread"
                                    : "");
  else if (!shared->prepared)
    result.failure = "could not prepare";
  else if (shared->filterFailed)
    result.failure = "the system refuses seccomp filters";
  else if (shared->workFailed)
    result.failure = "the work failed";
  munmap(page, sizeof(Shared));
  return result;
}

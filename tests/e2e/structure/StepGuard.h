/// \file
/// Running code that must neither allocate, lock nor call the system.
#ifndef LATHE_TESTS_E2E_STRUCTURE_STEPGUARD_H
#define LATHE_TESTS_E2E_STRUCTURE_STEPGUARD_H

#include <functional>
#include <string>

namespace lathe::tests {

/// What a guarded piece of code did.
struct GuardResult {
  bool finished = false;
  std::string failure; ///< What went wrong, for people; usually empty.
  int allocations = 0; ///< Calls of malloc and its like, in any thread.
  int locks = 0;       ///< Calls of pthread_mutex_lock and its like.
};

/// Runs in a child process: prepare(), and once it returned true, work() under
/// a seccomp filter that lets all threads call futex and exit alone. Another
/// system call ends the child; `failure` then says which one. This process must
/// have one thread. Allocations and locks are not counted where a sanitizer
/// owns those functions.
GuardResult runGuarded(const std::function<bool()> &prepare,
                       const std::function<bool()> &work);

/// True if runGuarded counts allocations and locks in this build.
bool countsAllocations();

} // namespace lathe::tests

#endif // LATHE_TESTS_E2E_STRUCTURE_STEPGUARD_H

#include "tools/lathe/Interrupt.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace lathe;

namespace {

std::atomic<bool> interrupted{false};
std::atomic<int> lastSignal{SIGINT};
static_assert(std::atomic<bool>::is_always_lock_free &&
                  std::atomic<int>::is_always_lock_free,
              "set by a signal handler");

/// Readable once a signal came: what a wait can watch, whichever thread the
/// signal was delivered to. -1 until catchInterrupts().
int event = -1;

void handle(int signal) {
  int error = errno;
  lastSignal = signal;
  uint64_t one = 1;
  (void)!write(event, &one, sizeof one);
  errno = error;
  if (interrupted.exchange(true)) {
    std::signal(signal, SIG_DFL);
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, signal);
    pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
    std::raise(signal);
    // The first process of a container is spared what it does not handle.
    _exit(128 + signal);
  }
}

} // namespace

const std::atomic<bool> *tools::catchInterrupts() {
  if (event < 0)
    event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  struct sigaction action{};
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return &interrupted;
}

void tools::clearInterrupt() {
  interrupted = false;
  uint64_t count = 0;
  (void)!read(event, &count, sizeof count);
}

bool tools::waitForInput(int descriptor) {
  pollfd watched[] = {{descriptor, POLLIN, 0}, {event, POLLIN, 0}};
  while (poll(watched, 2, -1) < 0)
    if (errno != EINTR || interrupted)
      return !interrupted;
  return !interrupted;
}

void tools::waitForInterrupt() {
  while (!interrupted) {
    pollfd watched{event, POLLIN, 0};
    poll(&watched, 1, -1);
  }
}

bool tools::wasInterrupted() { return interrupted; }

int tools::interruptedStatus() { return 128 + lastSignal; }

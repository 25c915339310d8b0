#include "tools/lathe/Interrupt.h"

#include <csignal>

using namespace lathe;

namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free,
              "set by a signal handler");

void handle(int signal) {
  if (interrupted.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

} // namespace

const std::atomic<bool> *tools::catchInterrupts() {
  struct sigaction action{};
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return &interrupted;
}

void tools::clearInterrupt() { interrupted = false; }

bool tools::wasInterrupted() { return interrupted; }

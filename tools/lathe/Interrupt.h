/// \file
/// Ctrl-C as a wish to end, not as a kill.
#ifndef LATHE_TOOLS_LATHE_INTERRUPT_H
#define LATHE_TOOLS_LATHE_INTERRUPT_H

#include <atomic>

namespace lathe::tools {

/// From here on SIGINT and SIGTERM set the flag that is returned; a second one
/// without clearInterrupt() in between ends the process at once.
const std::atomic<bool> *catchInterrupts();

/// Forgets the signal, for the next answer of a chat.
void clearInterrupt();

/// Waits until the descriptor can be read, or is at its end; false if a signal
/// came first, however early.
bool waitForInput(int descriptor);

/// Waits until a signal came, however early.
void waitForInterrupt();

/// True if a signal came and was not cleared.
bool wasInterrupted();

/// The exit status of a command that the last signal ended, as shells have it:
/// 130 after SIGINT, 143 after SIGTERM.
int interruptedStatus();

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_INTERRUPT_H

/// \file
/// Ctrl-C as a wish to end, not as a kill.
#ifndef LATHE_TOOLS_LATHE_INTERRUPT_H
#define LATHE_TOOLS_LATHE_INTERRUPT_H

#include <atomic>

namespace lathe::tools {

/// From here on SIGINT and SIGTERM set the flag that is returned; a second one
/// without clearInterrupt() in between ends the process at once. System calls
/// are interrupted, so that reading a line ends too.
const std::atomic<bool> *catchInterrupts();

/// Forgets the signal, for the next answer of a chat.
void clearInterrupt();

/// True if a signal came and was not cleared.
bool wasInterrupted();

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_INTERRUPT_H

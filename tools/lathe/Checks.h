/// \file
/// What several commands demand of their options' values.
#ifndef LATHE_TOOLS_LATHE_CHECKS_H
#define LATHE_TOOLS_LATHE_CHECKS_H

#include "kernels/abi/Types.h"
#include "tools/lathe/Command.h"

#include <string>

namespace lathe::tools {

/// Accepts whole numbers from `least` to `most`; says the range otherwise.
CLI::Validator wholeNumber(u64 least, u64 most);

/// Accepts any text but "".
CLI::Validator notEmpty();

/// Turns "8G", "1.5Ti", "80GB" or "1000" into a number of bytes: K, M, G and T
/// are powers of 1000, Ki, Mi, Gi and Ti of 1024. For CLI::Option::transform.
CLI::Validator byteCount();

/// Most tokens of a context, and rows of a prefill step, that an option takes.
inline constexpr u64 contextMax = 1 << 24;
inline constexpr u64 chunkMax = 1 << 20;

/// Declares -t/--threads. `threads` stays as it is (0: the CPUs that this
/// process may use) unless the option is given.
void addThreads(CLI::App &command, u32 &threads);

/// Warns if so many threads are far more than the CPUs at hand.
void warnOfThreads(u32 threads);

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_CHECKS_H

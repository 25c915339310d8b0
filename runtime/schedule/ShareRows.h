/// \file
/// Sharing the rows of a step among prompts.
#ifndef LATHE_RUNTIME_SCHEDULE_SHAREROWS_H
#define LATHE_RUNTIME_SCHEDULE_SHAREROWS_H

#include "kernels/abi/Types.h"

#include <span>
#include <vector>

namespace lathe::runtime {

/// Shares `rows` among wants, oldest first: equally, but nobody gets more than
/// they want, and the first gets some before anybody else does. So a short
/// prompt is done soon beside a long one, and the oldest never waits for
/// others. shares[i] is of wants[i].
std::vector<u32> shareRows(u32 rows, std::span<const u32> wants);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_SHAREROWS_H

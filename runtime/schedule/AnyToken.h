/// \file
/// Tokens for measurements, where any will do.
#ifndef LATHE_RUNTIME_SCHEDULE_ANYTOKEN_H
#define LATHE_RUNTIME_SCHEDULE_ANYTOKEN_H

#include "kernels/abi/Types.h"

namespace lathe::runtime {

/// A token below `vocab`, not always the same one, but the same at a place each
/// time, so that a depth that is reached once can be used again.
inline i32 anyToken(u32 sequence, u32 position, u32 vocab) {
  u32 mixed = (sequence * 40503u + position) * 2654435761u;
  return i32((mixed >> 8) % vocab);
}

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_ANYTOKEN_H

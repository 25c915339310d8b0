/// \file
/// What the CPU executor must know of an engine to run it.
#ifndef LATHE_RUNTIME_DEVICE_STEPPROGRAM_H
#define LATHE_RUNTIME_DEVICE_STEPPROGRAM_H

#include "kernels/abi/StepArgs.h"
#include "runtime/kv/KvCache.h"

#include <vector>

namespace lathe::runtime {

/// Bytes of an arena slot: rows*T + sequences*S + partials*C + threads*N +
/// constant, over the capacities that the runtime picks.
struct SlotSize {
  u64 rows = 0;
  u64 sequences = 0;
  u64 partials = 0;
  u64 threads = 0;
  u64 constant = 0;
};

/// The program of one CPU target of an engine with its loaded code. Points into
/// the engine, which must outlive it.
struct StepProgram {
  u32 vocab = 0;
  u32 hidden = 0;
  /// Positions that the engine's tables cover.
  u32 context = 0;
  /// False: no cache; every step is one whole sequence from position 0.
  bool kv = true;
  std::vector<KvGroupInfo> groups; ///< Empty unless `kv`.
  std::vector<SlotSize> slots;
  u32 attentionChunk = 128;
  u32 attentionRowTile = 1;
  const u8 *weights = nullptr;
  StepFunction body = nullptr;
  StepFunction head = nullptr;
  StepFunction pick = nullptr; ///< Null: the engine has no such entry point.
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_DEVICE_STEPPROGRAM_H

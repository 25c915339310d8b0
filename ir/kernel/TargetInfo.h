/// \file
/// What a pass may know about a target. Codegen fills it; passes never name a
/// target.
#ifndef LATHE_IR_KERNEL_TARGETINFO_H
#define LATHE_IR_KERNEL_TARGETINFO_H

#include "ir/kernel/Kernel.h"

#include <string>

namespace lathe::ir {

/// The facts of one target that shape its kernel IR. Plain values; targets with
/// equal facts share one program.
struct TargetInfo {
  /// The layout that gemm and embed read.
  Layout weightLayout = Layout::R16;
  /// Tokens of one chunk of keys (part of the numerics id).
  int64_t attentionChunk = 128;
  /// Most rows of one item of attention work.
  int64_t attentionRowTile = 8;
  /// A paired gemm segment alternates groups of this many rows.
  int64_t pairRows = 16;
  /// Columns that one thread owns as a whole: what may be stored as q8 blocks.
  int64_t columnUnit = 32;
  /// Whether in short steps every thread may do rowwise launches for itself
  /// instead of sharing them, and prepare what its own attention reads.
  bool replicateRowwise = true;

  friend bool operator==(const TargetInfo &, const TargetInfo &) = default;
};

} // namespace lathe::ir

#endif // LATHE_IR_KERNEL_TARGETINFO_H

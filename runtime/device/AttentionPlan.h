/// \file
/// Cutting a step's attention into work items.
#ifndef LATHE_RUNTIME_DEVICE_ATTENTIONPLAN_H
#define LATHE_RUNTIME_DEVICE_ATTENTIONPLAN_H

#include "kernels/abi/StepArgs.h"

#include <span>
#include <vector>

namespace lathe::runtime {

/// What the cut depends on besides the batch.
struct AttentionShape {
  u32 chunk = 128; ///< Keys of a chunk, by absolute position.
  u32 rowTile = 1; ///< Most rows of an item.
  u32 window = 0;  ///< Of the KV group; 0: none.
  u32 kvHeads = 1; ///< An item gives this many threads work.
  u32 threads = 1; ///< Of the team.
  u32 rows = 1;    ///< Most rows of a step.
  u32 context = 1; ///< Most positions of a sequence.
};

/// The rows of one sequence in a step.
struct SequenceRows {
  u32 firstRow = 0; ///< In the step.
  u32 rows = 0;
  u32 start = 0; ///< Absolute position of the first row.
};

/// Makes the AttentionWorkList of one KV group, again for each step. Allocates
/// only when created.
///
/// An item takes up to rowTile neighbouring rows of a sequence and all chunks
/// that they see. If that gives fewer than about two (item, KV head) pairs per
/// thread, items take fewer rows; if single rows are still too few, each is cut
/// along its chunks into items with partials: such an item always has one row.
/// The cut never changes a bit of the result (numerics.md, "Attention").
class AttentionPlan {
public:
  explicit AttentionPlan(const AttentionShape &shape);

  /// Plans a step; the rows of all sequences together are at most
  /// AttentionShape::rows.
  void plan(std::span<const SequenceRows> sequences);

  /// The list of the latest plan; valid until the next.
  AttentionWorkList list();

  /// Most partial sets that any plan uses: the capacity C of the arena's sizes.
  u32 partialCapacity() const { return partialLimit; }

private:
  void addItems(u32 sequence, const SequenceRows &rows, u32 tile, u32 pieces);

  AttentionShape shape;
  u32 wantedItems; ///< That keep all threads busy.
  u32 partialLimit;
  u32 partials = 0;
  u32 usedCounters = 0;
  std::vector<AttentionWork> items;
  std::vector<u32> counters;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_DEVICE_ATTENTIONPLAN_H

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
/// that they see. Where that is more than half of one thread's share of the
/// step, it takes fewer rows; a single row that is still more is cut along its
/// chunks into items with partials: such an item always has one row. The cut
/// never changes a bit of the result (numerics.md, "Attention").
///
/// Items are listed longest first, siblings next to each other in the order of
/// their chunks: dealt out to threads one by one, the work is even.
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
  /// Some rows of one sequence and all chunks that they see.
  struct Tile {
    AttentionWork work;
    u32 parts;    ///< To cut its chunks into.
    u64 itemCost; ///< (row, chunk) pairs of its longest item.
  };

  /// The chunks that `count` rows from row `row` of a sequence on see.
  AttentionWork tileOf(u32 sequence, const SequenceRows &rows, u32 row,
                       u32 count) const;
  void addTiles(u32 sequence, const SequenceRows &rows, u64 mostCost);
  void emitItems(const Tile &tile);

  AttentionShape shape;
  u32 wantedItems; ///< That keep all threads busy.
  u32 partialLimit;
  u32 partials = 0; ///< Sets that the tiles so far use.
  u32 usedCounters = 0;
  std::vector<Tile> tiles;
  std::vector<AttentionWork> items;
  std::vector<u32> counters;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_DEVICE_ATTENTIONPLAN_H

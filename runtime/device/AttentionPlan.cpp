#include "runtime/device/AttentionPlan.h"

#include <algorithm>
#include <cassert>

namespace lathe::runtime {
namespace {

constexpr u32 noPartial = ~0u;

/// Partial sets beyond which rows stay whole, unless a single row alone needs
/// more: with that many chunks in flight there is enough to do.
constexpr u32 partialsEnough = 2048;

u32 divideUp(u32 a, u32 b) { return a / b + (a % b != 0); }

} // namespace

AttentionPlan::AttentionPlan(const AttentionShape &shape) : shape(shape) {
  wantedItems = divideUp(2 * shape.threads, shape.kvHeads);
  u32 seen =
      shape.window == 0 ? shape.context : std::min(shape.context, shape.window);
  // A window may start and end within a chunk.
  u32 chunks = divideUp(seen, shape.chunk) + (shape.window != 0);
  u32 splitRows = std::min(wantedItems - 1, shape.rows);
  partialLimit = u32(
      std::min<u64>(u64(splitRows) * chunks, std::max(chunks, partialsEnough)));
  items.reserve(std::max<u64>(shape.rows, 2 * u64(wantedItems)));
  counters.resize(u64(splitRows) * shape.kvHeads);
}

AttentionWorkList AttentionPlan::list() {
  return {.items = items.data(),
          .counters = counters.data(),
          .count = u32(items.size()),
          .counterCount = usedCounters};
}

void AttentionPlan::plan(std::span<const SequenceRows> sequences) {
  items.clear();
  partials = 0;
  usedCounters = 0;
  std::fill(counters.begin(), counters.end(), 0);

  u32 tiles = 0, rows = 0;
  for (const SequenceRows &sequence : sequences) {
    tiles += divideUp(sequence.rows, shape.rowTile);
    rows += sequence.rows;
  }
  u32 tile = shape.rowTile, pieces = 1;
  if (tiles < wantedItems && rows != 0) {
    tile = std::min(tile, divideUp(rows, wantedItems));
    if (rows < wantedItems)
      pieces = divideUp(wantedItems, rows);
  }
  for (u32 i = 0; i < sequences.size(); ++i)
    addItems(i, sequences[i], tile, pieces);
}

void AttentionPlan::addItems(u32 sequence, const SequenceRows &rows, u32 tile,
                             u32 pieces) {
  for (u32 row = 0; row < rows.rows; row += tile) {
    u32 count = std::min(tile, rows.rows - row);
    u32 first = rows.start + row, last = first + count - 1;
    u32 firstKey = shape.window == 0 || first < shape.window
                       ? 0
                       : first - shape.window + 1;
    u32 firstChunk = firstKey / shape.chunk;
    u32 chunks = last / shape.chunk + 1 - firstChunk;
    AttentionWork item{.sequence = sequence,
                       .firstRow = rows.firstRow + row,
                       .rowCount = count,
                       .firstChunk = firstChunk,
                       .chunkCount = chunks,
                       .partial = noPartial,
                       .counter = 0,
                       .siblings = 1};
    u32 parts = std::min(pieces, chunks);
    if (parts <= 1 || partials + chunks > partialLimit) {
      items.push_back(item);
      continue;
    }
    assert(count == 1);
    item.counter = usedCounters++;
    item.siblings = parts;
    for (u32 part = 0; part < parts; ++part) {
      u32 begin = u32(u64(chunks) * part / parts);
      u32 end = u32(u64(chunks) * (part + 1) / parts);
      item.firstChunk = firstChunk + begin;
      item.chunkCount = end - begin;
      item.partial = partials + begin;
      items.push_back(item);
    }
    partials += chunks;
  }
}

} // namespace lathe::runtime

#include "runtime/device/AttentionPlan.h"

#include <algorithm>

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
  tiles.reserve(shape.rows);
  items.reserve(u64(shape.rows) + wantedItems);
  counters.resize(u64(splitRows) * shape.kvHeads);
}

AttentionWorkList AttentionPlan::list() {
  return {.items = items.data(),
          .counters = counters.data(),
          .count = u32(items.size()),
          .counterCount = usedCounters};
}

AttentionWork AttentionPlan::tileOf(u32 sequence, const SequenceRows &rows,
                                    u32 row, u32 count) const {
  u32 first = rows.start + row, last = first + count - 1;
  u32 firstKey =
      shape.window == 0 || first < shape.window ? 0 : first - shape.window + 1;
  u32 firstChunk = firstKey / shape.chunk;
  return {.sequence = sequence,
          .firstRow = rows.firstRow + row,
          .rowCount = count,
          .firstChunk = firstChunk,
          .chunkCount = last / shape.chunk + 1 - firstChunk,
          .partial = noPartial,
          .counter = 0,
          .siblings = 1};
}

void AttentionPlan::plan(std::span<const SequenceRows> sequences) {
  tiles.clear();
  items.clear();
  partials = 0;
  usedCounters = 0;
  std::fill(counters.begin(), counters.end(), 0);

  u64 cost = 0; // (row, chunk) pairs
  for (u32 i = 0; i < sequences.size(); ++i)
    for (u32 row = 0; row < sequences[i].rows; row += shape.rowTile) {
      u32 count = std::min(shape.rowTile, sequences[i].rows - row);
      cost += u64(count) * tileOf(i, sequences[i], row, count).chunkCount;
    }
  u64 mostCost = std::max<u64>(1, (cost + wantedItems - 1) / wantedItems);
  for (u32 i = 0; i < sequences.size(); ++i)
    addTiles(i, sequences[i], mostCost);
  std::sort(tiles.begin(), tiles.end(), [](const Tile &a, const Tile &b) {
    return a.itemCost != b.itemCost ? a.itemCost > b.itemCost
                                    : a.work.firstRow < b.work.firstRow;
  });
  partials = 0;
  for (const Tile &tile : tiles)
    emitItems(tile);
}

void AttentionPlan::addTiles(u32 sequence, const SequenceRows &rows,
                             u64 mostCost) {
  for (u32 row = 0; row < rows.rows;) {
    u32 count = std::min(shape.rowTile, rows.rows - row);
    AttentionWork work = tileOf(sequence, rows, row, count);
    if (u64(count) * work.chunkCount > mostCost && count > 1) {
      count = u32(std::max<u64>(1, mostCost / work.chunkCount));
      work = tileOf(sequence, rows, row, count);
    }
    u32 parts = 1;
    if (count == 1 && work.chunkCount > mostCost &&
        partials + work.chunkCount <= partialLimit) {
      parts = u32((work.chunkCount + mostCost - 1) / mostCost);
      partials += work.chunkCount;
    }
    u32 longest = divideUp(work.chunkCount, parts);
    tiles.push_back({work, parts, u64(count) * longest});
    row += count;
  }
}

void AttentionPlan::emitItems(const Tile &tile) {
  AttentionWork item = tile.work;
  if (tile.parts == 1) {
    items.push_back(item);
    return;
  }
  item.counter = usedCounters++;
  item.siblings = tile.parts;
  u64 chunks = tile.work.chunkCount;
  for (u32 part = 0; part < tile.parts; ++part) {
    u32 begin = u32(chunks * part / tile.parts);
    u32 end = u32(chunks * (part + 1) / tile.parts);
    item.firstChunk = tile.work.firstChunk + begin;
    item.chunkCount = end - begin;
    item.partial = partials + begin;
    items.push_back(item);
  }
  partials += u32(chunks);
}

} // namespace lathe::runtime

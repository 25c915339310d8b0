/// \file
/// Skeleton `attention`: the step's rows over a paged KV group
/// (kernel.attention of ir/kernel/KernelOps.td). Operands: q f32
/// [T, heads * headDim] (scaled), the layer's K and V in the group's pool,
/// partials f32 [C][heads][headDim + 2] (o, m, l), out [T, heads * headDim]
/// stored as `store` says.
///
/// Work is args->attentionWork[group]; a unit is one item for one KV head and
/// all or some of the query heads that share it. Of an item with partials, row
/// r and chunk c (both counted from its first) have partial set `partial + r *
/// chunkCount + c`; l = 0 says that the row saw nothing of the chunk. Items
/// with the same counter are neighbours in the list, in the order of their
/// chunks, and have the same rows.
#ifndef LATHE_KERNELS_CPU_ATTENTION_H
#define LATHE_KERNELS_CPU_ATTENTION_H

#include "kernels/cpu/AttentionInt8.h"
#include "kernels/cpu/AttentionTile.h"
#include "kernels/cpu/AttentionUnits.h"
#include "kernels/cpu/Quantize.h"

namespace lathe::kernels::inline LATHE_ISA {

/// The tiles of a cache of int8, or of floats.
template <bool int8> struct ChunkTileOf {
  template <typename K, u32 Q> using Type = AttentionTile<K, Q>;
};
template <> struct ChunkTileOf<true> {
  template <typename K, u32 Q> using Type = Int8AttentionTile<K, Q>;
};

/// One unit of an attention kernel, for one thread.
template <typename K> struct AttentionRun {
  static constexpr i64 headDim = K::headDim, chunk = K::chunk;
  static constexpr i64 perKv = K::heads / K::kvHeads;
  static constexpr i64 chunkPages = chunk / i64(pageTokens);
  static_assert(K::store == Store::F32 || perKv * headDim % 32 == 0,
                "an activation block has one producer");
  using Result = ChunkResult<headDim>;
  template <u32 Q>
  using Tile =
      typename ChunkTileOf<K::element == KvType::Int8>::template Type<K, Q>;
  using Query = typename Tile<1>::Query;

  /// Queries of a full tile, and of the tiles for fewer.
  static constexpr u32 fullTile = Tile<1>::mostQueries;
  static constexpr u32 halfTile = fullTile / 2;
  static constexpr u32 smallTile = perKv < fullTile ? u32(perKv) : fullTile;
  /// Rows whose queries share one pass over the keys.
  static constexpr i64 passRows = perKv >= 64 ? 1 : 64 / perKv;
  static constexpr i64 passQueries =
      ceilDivide(passRows * perKv, i64(fullTile)) * fullTile;

  const StepArgs *args;
  const f32 *q;
  const void *keys;
  const void *values;
  f32 *partials;
  void *out;
  i64 kvHead;
  i64 firstHead, headCount; ///< The unit's query heads.

  /// An item that folds as it goes.
  void runFolding(const AttentionWork &item) const {
    for (i64 row = 0; row < item.rowCount; row += passRows) {
      i64 rows = countFrom(item, row);
      Result folded[passQueries];
      for (i64 i = 0; i < rows * headCount; ++i)
        folded[i].l = 0;
      overChunks(item, row, rows, [&](i64, i64 query, const Result &result) {
        fold(folded[query], result.o, result.m, result.l);
      });
      for (i64 r = 0; r < rows; ++r)
        finishRow(i64(item.firstRow) + row + r, folded + r * headCount);
    }
  }

  /// An item with partials, for all query heads of the KV head; the last of its
  /// siblings folds them all.
  void runPartial(const AttentionWorkList &list, i64 at) const {
    const AttentionWork &item = list.items[at];
    for (i64 row = 0; row < item.rowCount; row += passRows)
      overChunks(item, row, countFrom(item, row),
                 [&](i64 c, i64 query, const Result &result) {
                   f32 *to =
                       partialAt(item, row + query / perKv, c, query % perKv);
                   __builtin_memcpy(to, result.o, headDim * sizeof(f32));
                   to[headDim] = result.m;
                   to[headDim + 1] = result.l;
                 });
    u32 *counter = list.counters + u64(item.counter) * K::kvHeads + kvHead;
    if (__atomic_add_fetch(counter, 1, __ATOMIC_ACQ_REL) != item.siblings)
      return;
    __atomic_store_n(counter, 0, __ATOMIC_RELAXED);
    i64 first = at;
    while (first > 0 && isSibling(list.items[first - 1], item))
      --first;
    for (i64 row = 0; row < item.rowCount; ++row) {
      Result folded[perKv];
      for (i64 head = 0; head < perKv; ++head) {
        folded[head].l = 0;
        for (i64 s = first; s < first + item.siblings; ++s)
          for (i64 c = 0; c < list.items[s].chunkCount; ++c) {
            const f32 *from = partialAt(list.items[s], row, c, head);
            fold(folded[head], from, from[headDim], from[headDim + 1]);
          }
      }
      finishRow(i64(item.firstRow) + row, folded);
    }
  }

private:
  static bool isSibling(const AttentionWork &a, const AttentionWork &b) {
    return a.partial != ~0u && a.counter == b.counter;
  }

  static i64 countFrom(const AttentionWork &item, i64 row) {
    i64 rows = i64(item.rowCount) - row;
    return rows < passRows ? rows : passRows;
  }

  f32 *partialAt(const AttentionWork &item, i64 row, i64 c, i64 head) const {
    i64 set = i64(item.partial) + row * item.chunkCount + c;
    return partials + (set * K::heads + kvHead * perKv + head) * (headDim + 2);
  }

  /// Appends a chunk to what is already folded.
  static LATHE_INLINE void fold(Result &left, const f32 *o, f32 m, f32 l) {
    if (l == 0)
      return;
    if (left.l == 0) {
      __builtin_memcpy(left.o, o, headDim * sizeof(f32));
      left.m = m;
      left.l = l;
      return;
    }
    f32 top = left.m > m ? left.m : m;
    FloatLanes both = {left.m - top, m - top};
    both = expOfNegative({both}).v;
    f32 a = both[0], b = both[1];
    left.l = fmaScalar(left.l, a, l * b);
    left.m = top;
    for (i64 d = 0; d < headDim; d += width) {
      Floats right = loadFirst(o + d, headDim - d) * Floats::splat(b);
      store(left.o + d, fma(load<Floats>(left.o + d), Floats::splat(a), right));
    }
  }

  /// Runs the chunks of an item for `rows` rows from `row` on (both counted in
  /// the item) and hands each query's result to body(chunk, query, result).
  template <typename Body>
  void overChunks(const AttentionWork &item, i64 row, i64 rows,
                  Body body) const {
    i64 queries = rows * headCount;
    Query panel[passQueries];
    for (i64 r = 0; r < rows; ++r)
      for (i64 h = 0; h < headCount; ++h)
        panel[r * headCount + h].set(
            q +
            ((item.firstRow + row + r) * K::heads + firstHead + h) * headDim);
    // A tile that is not full repeats the last query.
    i64 covered = queries;
    forTiles(queries, [&]<u32 Q>(i64 at) { covered = at + Q; });
    for (i64 query = queries; query < covered; ++query)
      panel[query] = panel[queries - 1];
    const i32 *positions = args->positions + item.firstRow + row;
    ChunkTiles<K> tiles = {};
    findTiles(item, positions, rows, 0, tiles.nextKeys, tiles.values);
    for (i64 c = 0; c < item.chunkCount; ++c) {
      i64 start = (item.firstChunk + c) * chunk;
      const u8 *nextValues[chunkPages] = {};
      __builtin_memcpy(tiles.keys, tiles.nextKeys, sizeof(tiles.keys));
      findTiles(item, positions, rows, c + 1, tiles.nextKeys, nextValues);
      forTiles(queries, [&]<u32 Q>(i64 at) {
        Visible visible[Q];
        for (u32 i = 0; i < Q; ++i)
          visible[i] = at + i < queries
                           ? visibleIn(positions[(at + i) / headCount], start)
                           : Visible{0, 0};
        Result results[Q];
        tiles.fetch = at == 0;
        Tile<Q>::run(panel + at, visible, tiles, results);
        for (u32 i = 0; i < Q && at + i < queries; ++i)
          body(c, at + i, results[i]);
      });
      __builtin_memcpy(tiles.values, nextValues, sizeof(nextValues));
    }
  }

  /// The tiles of an item's chunk `c`, null where no row at `positions` sees
  /// anything: such pages need not exist.
  void findTiles(const AttentionWork &item, const i32 *positions, i64 rows,
                 i64 c, const u8 **keyTiles, const u8 **valueTiles) const {
    const KvGroupArgs &group = args->groups[K::group];
    i64 start = (item.firstChunk + c) * chunk;
    i64 begin = firstPage(positions[0], start);
    i64 end = c < item.chunkCount
                  ? ceilDivide(positions[rows - 1] + 1 - start, i64(pageTokens))
                  : 0;
    for (i64 p = 0; p < chunkPages; ++p) {
      keyTiles[p] = valueTiles[p] = nullptr;
      if (p < begin || p >= end)
        continue;
      u64 page = pageOf(group, item.sequence, start + p * i64(pageTokens));
      keyTiles[p] = tileInPage<K>(group, keys, page, kvHead);
      valueTiles[p] = tileInPage<K>(group, values, page, kvHead);
    }
  }

  /// The first page of a chunk that a row at `position` or later sees.
  static i64 firstPage(i64 position, i64 start) {
    if (K::window == 0 || position - K::window + 1 <= start)
      return 0;
    return (position - K::window + 1 - start) / i64(pageTokens);
  }

  static LATHE_INLINE Visible visibleIn(i64 position, i64 start) {
    i64 lo = 0, hi = position + 1 - start;
    if (K::window > 0 && position + 1 - K::window > start)
      lo = position + 1 - K::window - start;
    return {i32(lo < chunk ? lo : chunk), i32(hi < chunk ? hi : chunk)};
  }

  /// Calls body<Q>(first query) for tiles that cover `queries`.
  template <typename Body>
  static LATHE_INLINE void forTiles(i64 queries, Body body) {
    constexpr u32 few = smallTile > halfTile ? smallTile : halfTile;
    i64 at = 0;
    for (; queries - at > i64(few); at += fullTile)
      body.template operator()<fullTile>(at);
    if (queries - at > i64(smallTile))
      body.template operator()<few>(at);
    else if (at < queries)
      body.template operator()<smallTile>(at);
  }

  /// Writes one row of the unit's query heads.
  void finishRow(i64 row, const Result *folded) const {
    alignas(64) f32 done[ceilDivide(perKv * headDim, 16) * 16];
    i64 outWidth = headCount * headDim, column = firstHead * headDim;
    for (i64 head = 0; head < headCount; ++head) {
      Floats inverse = Floats::splat(1) / Floats::splat(folded[head].l);
      for (i64 d = 0; d < headDim; d += width)
        storeFirst(done + head * headDim + d,
                   loadFirst(folded[head].o + d, headDim - d) * inverse,
                   headDim - d);
    }
    if constexpr (K::store == Store::F32) {
      __builtin_memcpy(static_cast<f32 *>(out) + row * K::heads * headDim +
                           column,
                       done, u64(outWidth) * sizeof(f32));
    } else {
      ActivationBlock *to = static_cast<ActivationBlock *>(out) +
                            (row * K::heads * headDim + column) / 32;
      for (i64 d = 0; d < outWidth; d += 32)
        quantizeBlock(done + d, to + d / 32);
    }
  }
};

/// The part of thread `thread` of the work list.
template <typename K>
void attention(const StepArgs *args, const void *const *operands, u32,
               u32 thread, u32 threads) {
  const AttentionWorkList &list = args->attentionWork[K::group];
  forAttentionUnits<K>(list, thread, threads, [&](const AttentionUnit &unit) {
    AttentionRun<K> run = {args,
                           static_cast<const f32 *>(operands[0]),
                           operands[1],
                           operands[2],
                           static_cast<f32 *>(const_cast<void *>(operands[3])),
                           const_cast<void *>(operands[4]),
                           unit.kvHead,
                           unit.heads.begin,
                           unit.heads.end - unit.heads.begin};
    if (list.items[unit.item].partial == ~0u)
      run.runFolding(list.items[unit.item]);
    else
      run.runPartial(list, unit.item);
  });
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_ATTENTION_H

/// \file
/// One chunk of keys for a tile of queries of one KV head (docs/numerics.md,
/// "Attention"). A query is a (row, query head); a tile's queries share the
/// reads of K and V, and none of them depends on the others.
#ifndef LATHE_KERNELS_CPU_ATTENTIONTILE_H
#define LATHE_KERNELS_CPU_ATTENTIONTILE_H

#include "kernels/cpu/AttentionChunk.h"
#include "kernels/cpu/KvCache.h"

namespace lathe::kernels::inline LATHE_ISA {

/// A query as a float cache wants it.
template <i64 headDim> struct FloatQuery {
  f32 x[headDim];

  LATHE_INLINE void set(const f32 *q) {
    __builtin_memcpy(x, q, headDim * sizeof(f32));
  }
};

template <typename K, u32 Q> struct AttentionTile {
  using Query = FloatQuery<K::headDim>;
  using Cache = CacheElement<K::element>;
  using Type = typename Cache::Type;
  using Chunk = AttentionChunk<K, Q>;
  static constexpr i64 headDim = K::headDim;
  static constexpr i64 chunk = K::chunk;
  static constexpr u32 mostQueries = attentionQueries;

  /// queries: [Q].
  static __attribute__((noinline)) void run(const Query *queries,
                                            const Visible *visible,
                                            const ChunkTiles<K> &tiles,
                                            ChunkResult<headDim> *results) {
    Chunk::run(
        visible, results,
        [&]<bool masked>(i32 page,
                         f32(*scores)[chunk]) __attribute__((always_inline)) {
          tiles.fetchValues(page);
          scorePage<masked>(queries, visible,
                            reinterpret_cast<const Type *>(tiles.keys[page]),
                            page, scores);
        },
        [&](const f32(*p)[chunk], Visible any, Visible common)
            __attribute__((always_inline)) {
              weigh(p, visible, any, common, tiles, results);
            });
  }

private:
  /// Vector registers for accumulators.
  static constexpr u32 accumulators = halves == 1 ? 24 : 12;

  /// Scores of 16 keys, -inf where a query does not see one if `masked`; a
  /// query without visible keys in the chunk may have any. Lane = key, one
  /// chain over d for each. One page after the other: of two streams at once
  /// the hardware fetches neither ahead.
  template <bool masked>
  static LATHE_INLINE void scorePage(const Query *queries,
                                     const Visible *visible, const Type *keys,
                                     i32 page, f32 (*scores)[chunk]) {
    Floats s[Q][halves];
    LATHE_UNROLL
    for (u32 i = 0; i < Q; ++i)
      LATHE_UNROLL
    for (u32 h = 0; h < halves; ++h)
      s[i][h] = Floats::splat(0);
    for (i64 d = 0; d < headDim; ++d) {
      LATHE_UNROLL
      for (u32 h = 0; h < halves; ++h) {
        Floats key = Cache::get(keys + d * i64(pageTokens) + h * width);
        LATHE_UNROLL
        for (u32 i = 0; i < Q; ++i)
          s[i][h] = fma(Floats::splat(queries[i].x[d]), key, s[i][h]);
      }
    }
    LATHE_UNROLL
    for (u32 h = 0; h < halves; ++h)
      Chunk::template finishScores<masked>(
          [&](u32 i) __attribute__((always_inline)) { return s[i][h]; },
          visible, page, h, scores);
  }

  /// o: lane = d, one chain over ascending visible keys.
  static LATHE_INLINE void weigh(const f32 (*p)[chunk], const Visible *visible,
                                 Visible any, Visible common,
                                 const ChunkTiles<K> &tiles,
                                 ChunkResult<headDim> *results) {
    constexpr i64 parts = ceilDivide(headDim, i64(width));
    constexpr u32 room = accumulators / Q;
    constexpr u32 atOnce = room >= 4 ? 4 : room >= 2 ? 2 : 1;
    auto run = [&]<u32 P>(i64 part) __attribute__((always_inline)) {
      weighParts<P>(p, visible, any, common, tiles, part * width, results);
    };
    i64 part = 0;
    for (; part + i64(atOnce) <= parts; part += atOnce)
      run.template operator()<atOnce>(part);
    for (; part < parts; ++part)
      run.template operator()<1>(part);
  }

  template <u32 P>
  static LATHE_INLINE void
  weighParts(const f32 (*p)[chunk], const Visible *visible, Visible any,
             Visible common, const ChunkTiles<K> &tiles, i64 d,
             ChunkResult<headDim> *results) {
    Floats o[Q][P];
    LATHE_UNROLL
    for (u32 i = 0; i < Q; ++i)
      LATHE_UNROLL
    for (u32 n = 0; n < P; ++n)
      o[i][n] = Floats::splat(0);
    auto some = [&](i32 begin, i32 end) __attribute__((always_inline)) {
      for (i32 j = begin; j < end; ++j)
        LATHE_UNROLL
      for (u32 n = 0; n < P; ++n) {
        Floats value = valueAt(tiles.values[j / 16], j % 16, d + n * width);
        LATHE_UNROLL
        for (u32 i = 0; i < Q; ++i)
          if (visible[i].lo <= j && j < visible[i].hi)
            o[i][n] = fma(Floats::splat(p[i][j]), value, o[i][n]);
      }
    };
    some(any.lo, common.lo);
    for (i32 page = common.lo / 16; page * 16 < common.hi; ++page) {
      if (d == 0)
        tiles.fetchNextKeys(page);
      i32 begin = page * 16 < common.lo ? common.lo : page * 16;
      i32 end = page * 16 + 16 < common.hi ? page * 16 + 16 : common.hi;
      for (i32 j = begin; j < end; ++j)
        LATHE_UNROLL
      for (u32 n = 0; n < P; ++n) {
        Floats value = valueAt(tiles.values[page], j % 16, d + n * width);
        LATHE_UNROLL
        for (u32 i = 0; i < Q; ++i)
          o[i][n] = fma(Floats::splat(p[i][j]), value, o[i][n]);
      }
    }
    some(common.hi, any.hi);
    LATHE_UNROLL
    for (u32 i = 0; i < Q; ++i)
      LATHE_UNROLL
    for (u32 n = 0; n < P; ++n)
      store(results[i].o + d + n * width, o[i][n]);
  }

  /// Values d .. d + width of a page's key; beyond the head: zeros.
  static LATHE_INLINE Floats valueAt(const u8 *tile, i32 key, i64 d) {
    const Type *at = reinterpret_cast<const Type *>(tile) + key * headDim + d;
    if constexpr (headDim % i64(width) == 0)
      return Cache::get(at);
    Type row[width] = {};
    for (i64 i = 0; i < i64(width) && d + i < headDim; ++i)
      row[i] = at[i];
    return Cache::get(row);
  }
};

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_ATTENTIONTILE_H

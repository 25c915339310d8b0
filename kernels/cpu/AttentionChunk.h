/// \file
/// What a chunk of keys is for a tile of queries, whatever the cache's dtype:
/// who sees what, the mask, the softmax (docs/numerics.md, "Attention").
#ifndef LATHE_KERNELS_CPU_ATTENTIONCHUNK_H
#define LATHE_KERNELS_CPU_ATTENTIONCHUNK_H

#include "kernels/abi/KvTile.h"
#include "kernels/cpu/Math.h"
#include "kernels/cpu/Skeleton.h"

namespace lathe::kernels::inline LATHE_ISA {

/// A query's visible keys in the chunk, [lo, hi) from the start of the chunk;
/// none if hi <= lo.
struct Visible {
  i32 lo, hi;
};

/// What a query saw of a chunk; l = 0 stands for nothing.
template <i64 headDim> struct ChunkResult {
  static constexpr i64 padded = ceilDivide(headDim, 16) * 16;
  alignas(64) f32 o[padded];
  f32 m, l;
};

/// The tiles of a chunk's pages, set where a query sees something, and what to
/// fetch meanwhile. Keys and values are two streams that take turns, one chunk
/// each, so that the hardware, which fetches ahead of one stream, would begin
/// anew at every turn: the values' tiles are fetched while keys are read, and
/// the next chunk's keys' while values are. Into L2: L1 is full of this chunk.
template <typename K> struct ChunkTiles {
  static constexpr i64 pages = K::chunk / i64(pageTokens);
  const u8 *keys[pages], *values[pages];
  const u8 *nextKeys[pages]; ///< Null where there are none.
  bool fetch;                ///< False: somebody else has.

  LATHE_INLINE void fetchValues(i64 page) const {
    if (fetch)
      fetchTile(values[page]);
  }
  LATHE_INLINE void fetchNextKeys(i64 page) const {
    if (fetch && nextKeys[page])
      fetchTile(nextKeys[page]);
  }

private:
  static LATHE_INLINE void fetchTile(const u8 *tile) {
    LATHE_UNROLL
    for (u64 i = 0; i < kvTileBytes(K::element, K::headDim); i += 64)
      __builtin_prefetch(tile + i, 0, 2);
  }
};

/// One chunk for Q queries.
template <typename K, u32 Q> struct AttentionChunk {
  static constexpr i64 chunk = K::chunk;
  static constexpr i32 tokens = i32(pageTokens);
  static_assert(chunk % tokens == 0);
  using Result = ChunkResult<K::headDim>;

  /// Calls score<masked>(page, scores [Q][chunk]) for the pages with a visible
  /// key, then weigh(p [Q][chunk], keys that some query sees, keys that every
  /// query with a visible key sees), which fills the results' o.
  template <typename Score, typename Weigh>
  static LATHE_INLINE void run(const Visible *visible, Result *results,
                               Score score, Weigh weigh) {
    i32 first = i32(chunk), last = 0;
    for (u32 i = 0; i < Q; ++i)
      if (visible[i].lo < visible[i].hi) {
        first = visible[i].lo < first ? visible[i].lo : first;
        last = visible[i].hi > last ? visible[i].hi : last;
      }
    for (u32 i = 0; i < Q; ++i)
      results[i].l = 0;
    if (first >= last)
      return;
    alignas(64) f32 scores[Q][chunk];
    i32 firstPage = first / tokens, endPage = (last + tokens - 1) / tokens;
    Visible common = commonKeys(visible, first, last);
    for (i32 page = firstPage; page < endPage; ++page)
      if (common.lo <= page * tokens && (page + 1) * tokens <= common.hi)
        score.template operator()<false>(page, scores);
      else
        score.template operator()<true>(page, scores);
    for (u32 i = 0; i < Q; ++i)
      if (visible[i].lo < visible[i].hi)
        softmax(scores[i], firstPage, endPage, results[i]);
    weigh(scores, Visible{first, last}, common);
  }

  /// Stores half h of a page's scores, s(i) of query i: with the soft cap, and
  /// -inf where a query does not see a key if `masked`. A query without visible
  /// keys in the chunk may have any.
  template <bool masked, typename S>
  static LATHE_INLINE void finishScores(S s, const Visible *visible, i32 page,
                                        u32 h, f32 (*scores)[chunk]) {
    i32 at = page * tokens + i32(h * width);
    IntLanes key = laneNumbers() + at;
    LATHE_UNROLL
    for (u32 i = 0; i < Q; ++i) {
      Floats score = s(i);
      if constexpr (K::softcap > 0) {
        constexpr f32 inverse = 1.0f / K::softcap;
        score =
            Floats::splat(K::softcap) * tanh(score * Floats::splat(inverse));
      }
      if constexpr (masked)
        score = select(sees(visible[i], key), score,
                       Floats::splat(-__builtin_inff()));
      store(scores[i] + at, score);
    }
  }

  /// Which of the keys a query sees.
  static LATHE_INLINE IntLanes sees(Visible visible, IntLanes key) {
    return key >= visible.lo & key < visible.hi;
  }

  static LATHE_INLINE IntLanes laneNumbers() {
    IntLanes lanes;
    for (u32 i = 0; i < width; ++i)
      lanes[i] = i32(i);
    return lanes;
  }

private:
  /// Keys that every query with a visible key sees; [lo, lo) if there are none.
  static Visible commonKeys(const Visible *visible, i32 first, i32 last) {
    Visible common = {first, last};
    for (u32 i = 0; i < Q; ++i)
      if (visible[i].lo < visible[i].hi) {
        common.lo = visible[i].lo > common.lo ? visible[i].lo : common.lo;
        common.hi = visible[i].hi < common.hi ? visible[i].hi : common.hi;
      }
    if (common.hi < common.lo)
      common.hi = common.lo;
    return common;
  }

  /// Replaces a query's scores by exp(score - m). Pages without a visible key
  /// would add +0 to l.
  static LATHE_INLINE void softmax(f32 *scores, i32 firstPage, i32 endPage,
                                   Result &result) {
    i32 begin = firstPage * tokens, end = endPage * tokens;
    Lanes16 top = Lanes16::splat(-__builtin_inff());
    for (i32 j = begin; j < end; j += 16)
      LATHE_UNROLL
    for (u32 h = 0; h < halves; ++h)
      top.part[h] =
          maxOrdered(load<Floats>(scores + j + h * width), top.part[h]);
    result.m = largest(top);
    Lanes16 sum = Lanes16::splat(0);
    for (i32 j = begin; j < end; j += 16)
      LATHE_UNROLL
    for (u32 h = 0; h < halves; ++h) {
      f32 *at = scores + j + h * width;
      Floats p = expOfNegative(load<Floats>(at) - Floats::splat(result.m));
      sum.part[h] = sum.part[h] + p;
      store(at, p);
    }
    result.l = treeSum(sum);
  }
};

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_ATTENTIONCHUNK_H

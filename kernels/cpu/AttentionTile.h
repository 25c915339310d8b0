/// \file
/// One chunk of keys for a tile of queries of one KV head (docs/numerics.md,
/// "Attention"). A query is a (row, query head); a tile's queries share the
/// reads of K and V, and none of them depends on the others.
#ifndef LATHE_KERNELS_CPU_ATTENTIONTILE_H
#define LATHE_KERNELS_CPU_ATTENTIONTILE_H

#include "kernels/cpu/KvCache.h"
#include "kernels/cpu/Math.h"

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

template <typename K, u32 Q> struct AttentionTile {
  using Cache = CacheElement<typename K::Element>;
  using Type = typename Cache::Type;
  static constexpr i64 headDim = K::headDim;
  static constexpr i64 chunk = K::chunk;
  static constexpr i64 chunkPages = chunk / i64(pageTokens);
  static_assert(chunk % i64(pageTokens) == 0);

  /// queries: [Q][headDim]. pages: the chunk's pages.
  static __attribute__((noinline)) void
  run(const f32 *queries, const Visible *visible, const void *const *keyPages,
      const void *const *valuePages, ChunkResult<headDim> *results) {
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
    i32 firstPage = first / i32(pageTokens);
    i32 endPage = (last + i32(pageTokens) - 1) / i32(pageTokens);
    Visible common = commonKeys(visible, first, last);
    for (i32 page = firstPage; page < endPage; ++page) {
      const Type *keys = static_cast<const Type *>(keyPages[page]);
      if (common.lo <= page * i32(pageTokens) &&
          (page + 1) * i32(pageTokens) <= common.hi)
        scorePage<false>(queries, visible, keys, page, scores);
      else
        scorePage<true>(queries, visible, keys, page, scores);
    }
    for (u32 i = 0; i < Q; ++i)
      if (visible[i].lo < visible[i].hi)
        softmax(scores[i], firstPage, endPage, results[i]);
    weigh(scores, visible, {first, last}, common, valuePages, results);
  }

private:
  /// Vector registers for accumulators.
  static constexpr u32 accumulators = halves == 1 ? 24 : 12;

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

  /// Scores of 16 keys, -inf where a query does not see one if `masked`; a
  /// query without visible keys in the chunk may have any. Lane = key, one
  /// chain over d for each. One page after the other: the hardware fetches
  /// ahead of a single stream better than software does, and of two at once not
  /// at all.
  template <bool masked>
  static LATHE_INLINE void scorePage(const f32 *queries, const Visible *visible,
                                     const Type *keys, i32 page,
                                     f32 (*scores)[chunk]) {
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
          s[i][h] = fma(Floats::splat(queries[i * headDim + d]), key, s[i][h]);
      }
    }
    LATHE_UNROLL
    for (u32 h = 0; h < halves; ++h) {
      IntLanes key = laneNumbers() + i32(page * i32(pageTokens) + h * width);
      LATHE_UNROLL
      for (u32 i = 0; i < Q; ++i) {
        Floats score = s[i][h];
        if constexpr (K::softcap > 0) {
          constexpr f32 inverse = 1.0f / K::softcap;
          score =
              Floats::splat(K::softcap) * tanh(score * Floats::splat(inverse));
        }
        if constexpr (masked) {
          IntLanes sees = key >= visible[i].lo & key < visible[i].hi;
          score = select(sees, score, Floats::splat(-__builtin_inff()));
        }
        store(scores[i] + page * i32(pageTokens) + h * width, score);
      }
    }
  }

  static LATHE_INLINE IntLanes laneNumbers() {
    IntLanes lanes;
    for (u32 i = 0; i < width; ++i)
      lanes[i] = i32(i);
    return lanes;
  }

  /// Replaces a query's scores by exp(score - m). Pages without a visible key
  /// would add +0 to l.
  static LATHE_INLINE void softmax(f32 *scores, i32 firstPage, i32 endPage,
                                   ChunkResult<headDim> &result) {
    i32 begin = firstPage * i32(pageTokens), end = endPage * i32(pageTokens);
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

  /// o: lane = d, one chain over ascending visible keys.
  static LATHE_INLINE void weigh(const f32 (*p)[chunk], const Visible *visible,
                                 Visible any, Visible common,
                                 const void *const *valuePages,
                                 ChunkResult<headDim> *results) {
    constexpr i64 parts = ceilDivide(headDim, i64(width));
    constexpr u32 room = accumulators / Q;
    constexpr u32 atOnce = room >= 4 ? 4 : room >= 2 ? 2 : 1;
    auto run = [&]<u32 P>(i64 part) __attribute__((always_inline)) {
      weighParts<P>(p, visible, any, common, valuePages, part * width, results);
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
             Visible common, const void *const *valuePages, i64 d,
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
        Floats value = valueAt(valuePages[j / 16], j % 16, d + n * width);
        LATHE_UNROLL
        for (u32 i = 0; i < Q; ++i)
          if (visible[i].lo <= j && j < visible[i].hi)
            o[i][n] = fma(Floats::splat(p[i][j]), value, o[i][n]);
      }
    };
    some(any.lo, common.lo);
    for (i32 page = common.lo / 16; page * 16 < common.hi; ++page) {
      i32 begin = page * 16 < common.lo ? common.lo : page * 16;
      i32 end = page * 16 + 16 < common.hi ? page * 16 + 16 : common.hi;
      for (i32 j = begin; j < end; ++j)
        LATHE_UNROLL
      for (u32 n = 0; n < P; ++n) {
        Floats value = valueAt(valuePages[page], j % 16, d + n * width);
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
  static LATHE_INLINE Floats valueAt(const void *valuePage, i32 key, i64 d) {
    const Type *at = static_cast<const Type *>(valuePage) + key * headDim + d;
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

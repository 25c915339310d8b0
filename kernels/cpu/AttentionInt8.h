/// \file
/// One chunk of int8 keys and values for a tile of queries of one KV head: both
/// products are integer dot products, as in a gemm, of tiles with activation
/// blocks, which the queries and then the weights of the keys are made into
/// (docs/numerics.md, "Attention").
#ifndef LATHE_KERNELS_CPU_ATTENTIONINT8_H
#define LATHE_KERNELS_CPU_ATTENTIONINT8_H

#include "kernels/cpu/AttentionChunk.h"
#include "kernels/cpu/KvCache.h"
#include "kernels/cpu/Quantize.h"

namespace lathe::kernels::inline LATHE_ISA {

/// Codes q + 128 times activations.
using Int8Dot = Dot<255, 128, false>;

/// n values as activation blocks, in the shape that Int8Dot wants.
template <i64 n> struct Int8Row {
  static constexpr i64 blocks = ceilDivide(n, 32);
  alignas(64) i8 q[32 * blocks];
  f32 d[blocks];
  i32 starts[blocks][2];

  LATHE_INLINE void set(i64 block, const f32 *x) {
    ActivationBlock made;
    quantizeBlock(x, &made);
    __builtin_memcpy(q + 32 * block, made.q, 32);
    d[block] = made.d;
    Int8Dot::starts(made, starts[block]);
  }

  LATHE_INLINE Int8Dot::Acc begin(i64 block) const {
    return Int8Dot::begin(starts[block][0]);
  }
  LATHE_INLINE Int8Dot::Acc add(Int8Dot::Acc acc, Int8Dot::Codes codes,
                                i64 at) const {
    return Int8Dot::add(acc, codes, load<i32>(q + at));
  }
  /// sum + d * the block's dot product.
  LATHE_INLINE Floats finish(i64 block, Int8Dot::Acc acc, Floats sum) const {
    Ints whole = Int8Dot::finish(acc, starts[block][1]);
    return fma(toFloats(whole), Floats::splat(d[block]), sum);
  }
};

/// A query as an int8 cache wants it: behind the butterfly that keys went
/// through, and what that multiplies products by taken back.
template <i64 headDim> struct Int8Query : Int8Row<headDim> {
  LATHE_INLINE void set(const f32 *q) {
    constexpr i64 blocks = Int8Row<headDim>::blocks;
    alignas(64) f32 x[32 * blocks] = {};
    __builtin_memcpy(x, q, headDim * sizeof(f32));
    butterfly<headDim>(x);
    constexpr f32 inverse = 1.0f / butterflyRun<headDim>;
    for (i64 i = 0; i < 32 * blocks; i += width)
      store(x + i, load<Floats>(x + i) * Floats::splat(inverse));
    for (i64 block = 0; block < blocks; ++block)
      Int8Row<headDim>::set(block, x + 32 * block);
  }
};

template <typename K, u32 Q> struct Int8AttentionTile {
  using Query = Int8Query<K::headDim>;
  using Tile = KvTile<KvType::Int8, K::headDim>;
  using Chunk = AttentionChunk<K, Q>;
  static constexpr i64 headDim = K::headDim;
  static constexpr i64 chunk = K::chunk;
  static constexpr i32 tokens = i32(pageTokens);
  static constexpr i64 padded = Tile::padded;
  static_assert(chunk % 32 == 0, "weights are cut into blocks of 32");
  /// Accumulators hold integers and floats at once.
  static constexpr u32 mostQueries =
      attentionQueries > 8 ? 8 : attentionQueries;

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
          scorePage<masked>(queries, visible, tiles.keys[page], page, scores);
        },
        [&](const f32(*p)[chunk], Visible any, Visible common)
            __attribute__((always_inline)) {
              Int8Row<chunk> weights[Q];
              for (i32 block = any.lo / 32; block * 32 < any.hi; ++block)
                for (u32 i = 0; i < Q; ++i)
                  setWeights(p[i], visible[i], any, common, tiles, block,
                             weights[i]);
              weigh(weights, any, tiles, results);
            });
  }

private:
  /// Scores of 16 keys. Lane = key, one chain over blocks of 32 d.
  template <bool masked>
  static LATHE_INLINE void scorePage(const Query *queries,
                                     const Visible *visible, const u8 *tile,
                                     i32 page, f32 (*scores)[chunk]) {
    const u8 *codes = Tile::keyCodes(tile);
    LATHE_UNROLL
    for (u32 h = 0; h < halves; ++h) {
      Floats s[Q];
      LATHE_UNROLL
      for (u32 i = 0; i < Q; ++i)
        s[i] = Floats::splat(0);
      LATHE_UNROLL
      for (i64 block = 0; block < Query::blocks; ++block) {
        Int8Dot::Acc acc[Q];
        LATHE_UNROLL
        for (u32 i = 0; i < Q; ++i)
          acc[i] = queries[i].begin(block);
        i64 end = 32 * block + 32 < padded ? 32 * block + 32 : padded;
        LATHE_UNROLL
        for (i64 d = 32 * block; d < end; d += 4) {
          auto four = Int8Dot::prepare(
              load<ByteLanes>(codes + d * tokens + 4 * h * width));
          LATHE_UNROLL
          for (u32 i = 0; i < Q; ++i)
            acc[i] = queries[i].add(acc[i], four, d);
        }
        LATHE_UNROLL
        for (u32 i = 0; i < Q; ++i)
          s[i] = queries[i].finish(block, acc[i], s[i]);
      }
      Floats scale = load<Floats>(Tile::keyScales(tile) + h * width);
      Chunk::template finishScores<masked>(
          [&](u32 i) __attribute__((always_inline)) { return s[i] * scale; },
          visible, page, h, scores);
    }
  }

  /// A block of a query's weights, p times the values' scales; 0 for a key that
  /// is not visible. Pages outside of `any` are not read.
  static LATHE_INLINE void setWeights(const f32 *p, Visible visible,
                                      Visible any, Visible common,
                                      const ChunkTiles<K> &tiles, i32 block,
                                      Int8Row<chunk> &weights) {
    alignas(64) f32 x[32];
    LATHE_UNROLL
    for (u32 n = 0; n < 32 / width; ++n) {
      i32 at = 32 * block + i32(n * width), page = at / tokens;
      Floats weight = Floats::splat(0);
      if ((page + 1) * tokens > any.lo && page * tokens < any.hi) {
        weight =
            load<Floats>(p + at) *
            load<Floats>(Tile::valueScales(tiles.values[page]) + at % tokens);
        if (at < common.lo || at + i32(width) > common.hi ||
            visible.hi <= visible.lo)
          weight = select(Chunk::sees(visible, Chunk::laneNumbers() + at),
                          weight, Floats::splat(0));
      }
      store(x + n * width, weight);
    }
    weights.set(block, x);
  }

  /// o: lane = d, one chain over ascending blocks of 32 keys.
  static LATHE_INLINE void weigh(const Int8Row<chunk> *weights, Visible any,
                                 const ChunkTiles<K> &tiles,
                                 ChunkResult<headDim> *results) {
    constexpr i64 parts = padded / i64(width);
    constexpr u32 room = (halves == 1 ? 14 : 4) / Q;
    constexpr u32 atOnce = room >= 4 ? 4 : room >= 2 ? 2 : 1;
    auto run = [&]<u32 P>(i64 part) __attribute__((always_inline)) {
      weighParts<P>(weights, any, tiles, part * width, results);
    };
    i64 part = 0;
    for (; part + i64(atOnce) <= parts; part += atOnce)
      run.template operator()<atOnce>(part);
    for (; part < parts; ++part)
      run.template operator()<1>(part);
  }

  template <u32 P>
  static LATHE_INLINE void weighParts(const Int8Row<chunk> *weights,
                                      Visible any, const ChunkTiles<K> &tiles,
                                      i64 d, ChunkResult<headDim> *results) {
    Floats o[Q][P];
    LATHE_UNROLL
    for (u32 i = 0; i < Q; ++i)
      LATHE_UNROLL
    for (u32 n = 0; n < P; ++n)
      o[i][n] = Floats::splat(0);
    for (i32 block = any.lo / 32; block * 32 < any.hi; ++block) {
      Int8Dot::Acc acc[Q][P];
      LATHE_UNROLL
      for (u32 i = 0; i < Q; ++i)
        LATHE_UNROLL
      for (u32 n = 0; n < P; ++n)
        acc[i][n] = weights[i].begin(block);
      for (i32 page = 2 * block; page < 2 * block + 2; ++page) {
        if ((page + 1) * tokens <= any.lo || page * tokens >= any.hi)
          continue;
        if (d == 0)
          tiles.fetchNextKeys(page);
        const u8 *codes = Tile::valueCodes(tiles.values[page]) + 4 * d;
        LATHE_UNROLL
        for (i32 j = 0; j < tokens; j += 4)
          LATHE_UNROLL
        for (u32 n = 0; n < P; ++n) {
          auto four = Int8Dot::prepare(
              load<ByteLanes>(codes + j * padded + 4 * n * width));
          LATHE_UNROLL
          for (u32 i = 0; i < Q; ++i)
            acc[i][n] = weights[i].add(acc[i][n], four, page * tokens + j);
        }
      }
      LATHE_UNROLL
      for (u32 i = 0; i < Q; ++i)
        LATHE_UNROLL
      for (u32 n = 0; n < P; ++n)
        o[i][n] = weights[i].finish(block, acc[i][n], o[i][n]);
    }
    LATHE_UNROLL
    for (u32 i = 0; i < Q; ++i)
      LATHE_UNROLL
    for (u32 n = 0; n < P; ++n)
      store(results[i].o + d + n * width, o[i][n]);
  }
};

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_ATTENTIONINT8_H

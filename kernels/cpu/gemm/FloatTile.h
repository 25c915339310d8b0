/// \file
/// The tile of a gemm with F32, F16 or BF16 weights and f32 activations: one
/// chain per output over ascending k (docs/numerics.md, "gemm").
#ifndef LATHE_KERNELS_CPU_GEMM_FLOATTILE_H
#define LATHE_KERNELS_CPU_GEMM_FLOATTILE_H

#include "kernels/cpu/gemm/Codes.h"

namespace lathe::kernels::inline LATHE_ISA {

/// Activations as they are: an item is the value of one k.
struct FloatItems {
  using Item = f32;
  static constexpr i64 itemKs = 1;

  /// Items [first, first + count) of a row of k values, `stride` apart; those
  /// beyond its end are 0.
  static LATHE_INLINE void put(const f32 *row, i64 k, i64 first, i64 count,
                               f32 *to, i64 stride) {
    i64 valid = k - first < count ? k - first : count;
    for (i64 i = 0; i < valid; ++i)
      to[i * stride] = row[first + i];
    for (i64 i = valid; i < count; ++i)
      to[i * stride] = 0;
  }
  static LATHE_INLINE Floats add(Floats sum, Floats weights, f32 item) {
    return fma(weights, Floats::splat(item), sum);
  }
};

/// Activations rounded to bf16: an item is those of two k. Lanes is UIntLanes;
/// a parameter, since dotBrain need not exist where this is not used.
template <typename Lanes> struct BrainItems {
  using Item = u32;
  static constexpr i64 itemKs = 2;

  /// As FloatItems::put.
  static LATHE_INLINE void put(const f32 *row, i64 k, i64 first, i64 count,
                               u32 *to, i64 stride) {
    constexpr i64 most = width / 2;
    for (i64 i = 0; i < count; i += most) {
      u32 pairs[most];
      store(pairs, roundToBrain(
                       loadFirst(row + 2 * (first + i), k - 2 * (first + i))));
      for (i64 j = 0; j < most && i + j < count; ++j)
        to[(i + j) * stride] = pairs[j];
    }
  }
  static LATHE_INLINE Floats add(Floats sum, Lanes weights, u32 item) {
    return dotBrain(sum, weights, Lanes{} + item);
  }
};

/// How a float format gives the weights that meet item `item` of a block.
template <Format format> struct FloatRows;

template <> struct FloatRows<Format::F32> : FloatItems {
  using Block = F32R16;
  static constexpr i64 blockItems = 1;
  static LATHE_INLINE Floats weights(const Block &b, u32, u32 lane) {
    return load<Floats>(b.v + lane);
  }
};

template <> struct FloatRows<Format::F16> : FloatItems {
  using Block = F16R16;
  static constexpr i64 blockItems = 1;
  static LATHE_INLINE Floats weights(const Block &b, u32, u32 lane) {
    return loadHalf(b.v + lane);
  }
};

/// Where the layer multiplies bf16.
template <bool dots> struct BrainRows : BrainItems<UIntLanes> {
  using Block = BF16R16;
  static constexpr i64 blockItems = 1;
  static LATHE_INLINE UIntLanes weights(const Block &b, u32, u32 lane) {
    return load<UIntLanes>(b.v[lane]);
  }
};
/// Where it does not.
template <> struct BrainRows<false> : FloatItems {
  using Block = BF16R16;
  static constexpr i64 blockItems = 2;
  static LATHE_INLINE Floats weights(const Block &b, u32 item, u32 lane) {
    UIntLanes pair = load<UIntLanes>(b.v[lane]);
    return brainToFloats(item == 0 ? pair : pair >> 16);
  }
};
template <> struct FloatRows<Format::BF16> : BrainRows<brainDots> {};

template <Format format> struct FloatTile {
  using Rows = FloatRows<format>;
  using Block = typename Rows::Block;
  using Item = typename Rows::Item;
  using Input = f32;
  static constexpr u32 maxRows = tileRows(true);

  /// As QuantTile's; items are padded to whole blocks.
  static constexpr i64 itemsOf(i64 k) {
    i64 blockKs = blockItems * Rows::itemKs;
    return (k + blockKs - 1) / blockKs * blockItems;
  }
  static constexpr i64 blockItems = Rows::blockItems;
  static constexpr i64 wholeItems = 1024, sliceItems = 512;

  /// As QuantTile::prepare; rows have k values and lie k apart.
  template <u32 M>
  static inline void prepare(const f32 *rows, i64 k, i64 first, i64 count,
                             Item *to) {
    for (u32 m = 0; m < M; ++m)
      Rows::put(rows + m * k, k, first, count, to + m, M);
  }

  /// As QuantTile::run.
  template <u32 M, u32 S>
  static __attribute__((noinline)) void
  run(const Block *const *groups, i64 items, const Item *a, f32 *const *out,
      i64 outStride, bool add) {
    Floats f[S][halves][M];
    const Block *w[S];
    LATHE_UNROLL
    for (u32 s = 0; s < S; ++s) {
      w[s] = groups[s];
      LATHE_UNROLL
      for (u32 h = 0; h < halves; ++h)
        LATHE_UNROLL
      for (u32 m = 0; m < M; ++m)
        f[s][h][m] = add ? load<Floats>(out[s] + m * outStride + h * width)
                         : Floats::splat(0);
    }
    i64 blocks = items / blockItems;
    for (i64 b = 0; b < blocks; ++b, a += blockItems * M)
      LATHE_UNROLL
    for (u32 s = 0; s < S; ++s) {
      LATHE_UNROLL
      for (u32 j = 0; j < blockItems; ++j)
        LATHE_UNROLL
      for (u32 h = 0; h < halves; ++h) {
        auto weights = Rows::weights(w[s][b], j, h * width);
        LATHE_UNROLL
        for (u32 m = 0; m < M; ++m)
          f[s][h][m] = Rows::add(f[s][h][m], weights, a[j * M + m]);
      }
    }
    LATHE_UNROLL
    for (u32 s = 0; s < S; ++s)
      LATHE_UNROLL
    for (u32 h = 0; h < halves; ++h)
      LATHE_UNROLL
    for (u32 m = 0; m < M; ++m)
      store(out[s] + m * outStride + h * width, f[s][h][m]);
  }
};

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_GEMM_FLOATTILE_H

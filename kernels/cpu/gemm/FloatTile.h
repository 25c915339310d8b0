/// \file
/// The tile of a gemm with F32, F16 or BF16 weights and f32 activations: one
/// fma chain per output over ascending k.
#ifndef LATHE_KERNELS_CPU_GEMM_FLOATTILE_H
#define LATHE_KERNELS_CPU_GEMM_FLOATTILE_H

#include "kernels/cpu/gemm/Codes.h"

namespace lathe::kernels::inline LATHE_ISA {

template <Format format> struct FloatRows;

template <> struct FloatRows<Format::F32> {
  using Block = F32R16;
  static constexpr u32 ks = 1;
  static LATHE_INLINE Floats value(const Block &b, u32, u32 lane) {
    return load<Floats>(b.v + lane);
  }
};

template <> struct FloatRows<Format::F16> {
  using Block = F16R16;
  static constexpr u32 ks = 1;
  static LATHE_INLINE Floats value(const Block &b, u32, u32 lane) {
    return loadHalf(b.v + lane);
  }
};

template <> struct FloatRows<Format::BF16> {
  using Block = BF16R16;
  static constexpr u32 ks = 2;
  static LATHE_INLINE Floats value(const Block &b, u32 k, u32 lane) {
    UIntLanes pair = load<UIntLanes>(b.v[lane]);
    return brainToFloats(k == 0 ? pair : pair >> 16);
  }
};

template <Format format> struct FloatTile {
  using Rows = FloatRows<format>;
  using Block = typename Rows::Block;
  using Item = f32;
  using Input = f32;
  static constexpr u32 maxRows = tileRows(true);

  /// As QuantTile's; items are padded to whole blocks.
  static constexpr i64 itemsOf(i64 k) {
    return (k + blockItems - 1) / blockItems * blockItems;
  }
  static constexpr i64 blockItems = Rows::ks;
  static constexpr i64 wholeItems = 1024, sliceItems = 512;

  /// As QuantTile::prepare; rows have k values and lie k apart.
  template <u32 M>
  static inline void prepare(const f32 *rows, i64 k, i64 first, i64 count,
                             f32 *to) {
    for (i64 item = first; item < first + count; ++item)
      for (u32 m = 0; m < M; ++m)
        *to++ = item < k ? rows[m * k + item] : 0.0f;
  }

  /// As QuantTile::run.
  template <u32 M, u32 S>
  static __attribute__((noinline)) void
  run(const Block *const *weights, i64 items, const f32 *a, f32 *const *out,
      i64 outStride, bool add) {
    Floats f[S][halves][M];
    const Block *w[S];
    LATHE_UNROLL
    for (u32 s = 0; s < S; ++s) {
      w[s] = weights[s];
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
      for (u32 j = 0; j < Rows::ks; ++j)
        LATHE_UNROLL
      for (u32 h = 0; h < halves; ++h) {
        Floats value = Rows::value(w[s][b], j, h * width);
        LATHE_UNROLL
        for (u32 m = 0; m < M; ++m)
          f[s][h][m] = fma(value, Floats::splat(a[j * M + m]), f[s][h][m]);
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

/// \file
/// The tile of a gemm with quantized weights: M activation rows times S groups
/// of 16 weight rows, over all of k. One accumulator per output, k ascending,
/// whatever M and S are (docs/numerics.md, "gemm").
#ifndef LATHE_KERNELS_CPU_GEMM_QUANTTILE_H
#define LATHE_KERNELS_CPU_GEMM_QUANTTILE_H

#include "kernels/cpu/gemm/Codes.h"

namespace lathe::kernels::inline LATHE_ISA {

/// An activation block as a tile reads it; rows of a tile lie side by side.
struct Prepared {
  i8 q[32];
  f32 d;
  /// Sum of q, times d.
  f32 sum;
  /// What Dot::starts gave; for Minimum::Halves the bits of the two halves'
  /// sums as f32.
  i32 words[2];
};

template <Format format> struct QuantTile {
  using Q = Quant<format>;
  using Block = typename Q::Block;
  using D = Dot<Q::maxCode, Q::offset, Q::inHalves>;
  using Item = Prepared;
  using Input = ActivationBlock;
  static constexpr u32 maxRows = tileRows(Q::inHalves);

  /// Items of one activation row; those that meet one block of weights; up to
  /// how many k is taken whole, and how many a slice of it has else.
  static constexpr i64 itemsOf(i64 k) { return k / 32; }
  static constexpr i64 blockItems = Q::subs;
  static constexpr i64 wholeItems = 64, sliceItems = 24;

  /// Copies the items [first, first + count) of M rows, which are `stride`
  /// apart, side by side.
  template <u32 M>
  static inline void prepare(const ActivationBlock *rows, i64 stride, i64 first,
                             i64 count, Prepared *to) {
    for (i64 item = first; item < first + count; ++item)
      for (u32 m = 0; m < M; ++m, ++to) {
        const ActivationBlock &from = rows[m * stride + item];
        __builtin_memcpy(to->q, from.q, sizeof(to->q));
        to->d = from.d;
        i32 half[2];
        for (u32 h = 0; h < 2; ++h)
          half[h] = from.laneSum[h][0] + from.laneSum[h][1];
        to->sum = f32(half[0] + half[1]) * from.d;
        if constexpr (Q::minimum == Minimum::Halves)
          for (u32 h = 0; h < 2; ++h)
            to->words[h] = bitsAs<i32>(f32(half[h]));
        else
          D::starts(from, to->words);
      }
  }

  /// Multiplies M rows of `items` with S groups of weights; the outputs of row
  /// m and group s go to out[s] + m * outStride, added to what is there if
  /// `add`.
  ///
  /// With more than one row, native rows are done one after the other, so that
  /// activations are broadcast from memory again rather than kept (spilled) in
  /// registers for the other half.
  template <u32 M, u32 S>
  static __attribute__((noinline)) void
  run(const Block *const *weights, i64 items, const Prepared *a,
      f32 *const *out, i64 outStride, bool add) {
    if constexpr (M == 1) {
      runHalves<M, S, halves>(weights, items, a, 0, out, outStride, add);
    } else {
#pragma clang loop unroll(disable)
      for (u32 h = 0; h < halves; ++h)
        runHalves<M, S, 1>(weights, items, a, h * width, out, outStride, add);
    }
  }

private:
  /// The native rows from `lane` on.
  template <u32 M, u32 S, u32 H>
  static LATHE_INLINE void runHalves(const Block *const *weights, i64 items,
                                     const Prepared *a, u32 lane,
                                     f32 *const *out, i64 outStride, bool add) {
    Floats f[S][H][M];
    const Block *w[S];
    LATHE_UNROLL
    for (u32 s = 0; s < S; ++s) {
      w[s] = weights[s];
      LATHE_UNROLL
      for (u32 h = 0; h < H; ++h)
        LATHE_UNROLL
      for (u32 m = 0; m < M; ++m)
        f[s][h][m] =
            add ? load<Floats>(out[s] + m * outStride + lane + h * width)
                : Floats::splat(0);
    }
    for (i64 item = 0; item < items; item += blockItems) {
#pragma clang loop unroll(disable)
      for (u32 sub = 0; sub < Q::subs; ++sub, a += M)
        LATHE_UNROLL
      for (u32 s = 0; s < S; ++s)
        LATHE_UNROLL
      for (u32 h = 0; h < H; ++h)
        addBlock<M>(*w[s], sub, lane + h * width, a, f[s][h]);
      LATHE_UNROLL
      for (u32 s = 0; s < S; ++s)
        ++w[s];
    }
    LATHE_UNROLL
    for (u32 s = 0; s < S; ++s)
      LATHE_UNROLL
    for (u32 h = 0; h < H; ++h)
      LATHE_UNROLL
    for (u32 m = 0; m < M; ++m)
      store(out[s] + m * outStride + lane + h * width, f[s][h][m]);
  }

  /// Adds 32 k of `width` weight rows to the accumulators of M rows.
  template <u32 M>
  static LATHE_INLINE void addBlock(const Block &w, u32 sub, u32 lane,
                                    const Prepared *a, Floats *f) {
    typename D::Acc low[M], high[M];
    LATHE_UNROLL
    for (u32 m = 0; m < M; ++m) {
      // Q2_K, without an offset, keeps its half sums in `words`.
      constexpr bool started = Q::minimum != Minimum::Halves;
      low[m] = D::begin(started ? a[m].words[0] : 0);
      if constexpr (Q::inHalves)
        high[m] = D::begin(started ? a[m].words[1] : 0);
    }
    LATHE_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      BytePair pair = Q::codes(w, sub, i, lane);
      typename D::Codes first = D::prepare(pair.low);
      typename D::Codes second = D::prepare(pair.high);
      LATHE_UNROLL
      for (u32 m = 0; m < M; ++m) {
        low[m] = D::add(low[m], first, load<i32>(a[m].q + 4 * i));
        typename D::Acc &next = Q::inHalves ? high[m] : low[m];
        next = D::add(next, second, load<i32>(a[m].q + 16 + 4 * i));
      }
    }
    Floats scale = Q::scale(w, sub, lane);
    if constexpr (Q::inHalves) {
      auto s0 = D::scale(Q::halfScale(w, 2 * sub, lane));
      auto s1 = D::scale(Q::halfScale(w, 2 * sub + 1, lane));
      LATHE_UNROLL
      for (u32 m = 0; m < M; ++m)
        f[m] = fma(toFloats(D::finish(low[m], high[m], s0, s1)),
                   scale * Floats::splat(a[m].d), f[m]);
    } else {
      LATHE_UNROLL
      for (u32 m = 0; m < M; ++m)
        f[m] = fma(toFloats(D::finish(low[m], a[m].words[1])),
                   scale * Floats::splat(a[m].d), f[m]);
    }
    if constexpr (Q::minimum == Minimum::Whole) {
      Floats addend = Q::addend(w, sub, lane);
      LATHE_UNROLL
      for (u32 m = 0; m < M; ++m)
        f[m] = fma(addend, Floats::splat(a[m].sum), f[m]);
    }
    if constexpr (Q::minimum == Minimum::Halves) {
      Floats m0 = Q::halfMinimum(w, 2 * sub, lane);
      Floats m1 = Q::halfMinimum(w, 2 * sub + 1, lane);
      Floats minimumScale = Q::minimumScale(w, lane);
      LATHE_UNROLL
      for (u32 m = 0; m < M; ++m) {
        // Integers below 2^24: exact in any form.
        Floats sum = m0 * Floats::splat(bitsAs<f32>(a[m].words[0])) +
                     m1 * Floats::splat(bitsAs<f32>(a[m].words[1]));
        f[m] = fma(-sum, minimumScale * Floats::splat(a[m].d), f[m]);
      }
    }
  }
};

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_GEMM_QUANTTILE_H

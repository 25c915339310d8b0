/// \file
/// The one function that makes activation blocks (docs/numerics.md,
/// "Activation blocks"), fused into a store or not.
#ifndef LATHE_KERNELS_CPU_QUANTIZE_H
#define LATHE_KERNELS_CPU_QUANTIZE_H

#include "kernels/cpu/simd/Simd.h"

namespace lathe::kernels::inline LATHE_ISA {

using FourInts __attribute__((vector_size(16))) = i32;

/// Lane i is the sum of the lanes i, i + 4, i + 8 ...
LATHE_INLINE FourInts addFours(IntLanes x) {
  FourInts parts[width / 4];
  __builtin_memcpy(parts, &x, sizeof(parts));
  for (u32 n = width / 8; n > 0; n /= 2)
    for (u32 i = 0; i < n; ++i)
      parts[i] += parts[i + n];
  return parts[0];
}

/// How values become int8: q = roundeven(x * inverse), x ~ d * q.
struct Scaling {
  f32 d;
  f32 inverse; ///< 0: every q is 0.
};

/// The scaling of values by the bits of their largest magnitude.
LATHE_INLINE Scaling scalingOf(i32 largest) {
  constexpr i32 infinityBits = 0x7f800000, tinyBits = (127 - 100) << 23;
  if (__builtin_expect(largest >= infinityBits, 0))
    return {bitsAs<f32>(0x7fc00000), 0};
  if (__builtin_expect(largest < tinyBits, 0))
    return {0, 0};
  f32 amax = bitsAs<f32>(largest);
  return {amax / 127.0f, 127.0f / amax};
}

/// Quantizes 32 values, x[0..32), to `block`.
inline void quantizeBlock(const f32 *x, ActivationBlock *block) {
  constexpr u32 parts = 32 / width;
  using Quants = i8 __attribute__((vector_size(width)));
  Floats values[parts];
  IntLanes largest = {};
  LATHE_UNROLL
  for (u32 i = 0; i < parts; ++i) {
    values[i] = load<Floats>(x + i * width);
    IntLanes magnitude = bitsAs<IntLanes>(values[i].v) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  Scaling scaling = scalingOf(__builtin_reduce_max(largest));
  if (__builtin_expect(scaling.inverse == 0, 0)) {
    __builtin_memset(block, 0, sizeof(*block));
    block->d = scaling.d;
    return;
  }
  block->d = scaling.d;
  Floats scale = Floats::splat(scaling.inverse);
  IntLanes halfSums[2] = {};
  LATHE_UNROLL
  for (u32 i = 0; i < parts; ++i) {
    IntLanes q = roundToInt(values[i] * scale).v;
    store(block->q + i * width, __builtin_convertvector(q, Quants));
    halfSums[i / (16 / width)] += q;
  }
  // Lanes 0, 1 of every four belong to laneSum[.][0], 2, 3 to [.][1].
  for (u32 h = 0; h < 2; ++h) {
    FourInts sum = addFours(halfSums[h]);
    sum += __builtin_shufflevector(sum, sum, 1, 0, 3, 2);
    block->laneSum[h][0] = i16(sum[0]);
    block->laneSum[h][1] = i16(sum[2]);
  }
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_QUANTIZE_H

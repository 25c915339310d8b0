/// \file
/// The one function that makes activation blocks (docs/numerics.md,
/// "Activation blocks"), fused into a store or not.
#ifndef LATHE_KERNELS_CPU_QUANTIZE_H
#define LATHE_KERNELS_CPU_QUANTIZE_H

#include "kernels/cpu/simd/Simd.h"

namespace lathe::kernels::inline LATHE_ISA {

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
  i32 top = __builtin_reduce_max(largest);
  constexpr i32 infinityBits = 0x7f800000, tinyBits = (127 - 100) << 23;
  if (__builtin_expect(top >= infinityBits || top < tinyBits, 0)) {
    __builtin_memset(block, 0, sizeof(*block));
    if (top >= infinityBits)
      block->d = bitsAs<f32>(0x7fc00000);
    return;
  }
  f32 amax = bitsAs<f32>(top);
  block->d = amax / 127.0f;
  Floats scale = Floats::splat(127.0f / amax);
  i32 laneSums[2][2] = {};
  LATHE_UNROLL
  for (u32 i = 0; i < parts; ++i) {
    IntLanes q = roundToInt(values[i] * scale).v;
    store(block->q + i * width, __builtin_convertvector(q, Quants));
    // Lanes 0, 1 of every four belong to laneSum[.][0], 2, 3 to [.][1].
    constexpr u32 perHalf = 16 / width;
    u32 half = i / perHalf;
    i32 lanes[width];
    store(lanes, q);
    for (u32 lane = 0; lane < width; lane += 4) {
      laneSums[half][0] += lanes[lane] + lanes[lane + 1];
      laneSums[half][1] += lanes[lane + 2] + lanes[lane + 3];
    }
  }
  for (u32 h = 0; h < 2; ++h)
    for (u32 p = 0; p < 2; ++p)
      block->laneSum[h][p] = i16(laneSums[h][p]);
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_QUANTIZE_H

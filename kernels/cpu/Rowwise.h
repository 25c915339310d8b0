/// \file
/// Skeleton `rowwise`: stages over one row (kernel.rowwise of
/// ir/kernel/KernelOps.td): norm, elementwise region, stores. Operands are x
/// f32 [rows, k], then per stage its sides, then per stage its stores.
#ifndef LATHE_KERNELS_CPU_ROWWISE_H
#define LATHE_KERNELS_CPU_ROWWISE_H

#include "kernels/cpu/Math.h"
#include "kernels/cpu/Quantize.h"
#include "kernels/cpu/Skeleton.h"

namespace lathe::kernels::inline LATHE_ISA {

/// One stage over one row. `x` holds k values, `next` gets the row for the next
/// stage or is null.
template <typename Stage, i64 k>
inline void runStage(const f32 *x, const void *const *sides,
                     const void *const *stores, i64 row, f32 *next) {
  Floats factor = Floats::splat(1);
  if constexpr (Stage::rms)
    factor = Floats::splat(rmsFactor(x, k, Stage::epsilon));
  for (i64 column = 0; column < k; column += 32) {
    i64 valid = k - column < 32 ? k - column : 32;
    SideBlocks<Stage> side;
    side.find(sides, k, row, column, valid);
    alignas(64) f32 values[32];
    LATHE_UNROLL
    for (u32 c = 0; c < 32; c += width) {
      Floats value = k % 32 == 0
                         ? load<Floats>(x + column + c)
                         : loadFirst(x + column + (c < valid ? c : valid),
                                     c < valid ? valid - c : 0);
      if constexpr (Stage::rms)
        value = value * factor;
      store(values + c, applyMap<Stage>(side.blocks, c, value));
    }
    if (next)
      __builtin_memcpy(next + column, values, u64(valid) * sizeof(f32));
    for (i64 c = valid; c < 32; ++c)
      values[c] = 0;
    forEach<Stage::storeCount>([&]<u32 i>() __attribute__((always_inline)) {
      void *out = const_cast<void *>(stores[i]);
      if constexpr (Stage::stores[i] == Store::F32)
        __builtin_memcpy(static_cast<f32 *>(out) + row * k + column, values,
                         u64(valid) * sizeof(f32));
      else
        quantizeBlock(values, static_cast<ActivationBlock *>(out) +
                                  row * ceilDivide(k, 32) + column / 32);
    });
  }
}

/// The part of thread `thread` of a rowwise kernel over `rows` rows. With more
/// than one stage a row is kept on the stack in between.
template <typename K>
void rowwise(const StepArgs *, const void *const *operands, u32 rows,
             u32 thread, u32 threads) {
  using Stages = typename K::Stages;
  constexpr u32 count = Stages::size;
  constexpr i64 k = K::k;
  constexpr i64 scratch = count > 1 ? k : 1;
  Range range = splitEvenly(rows, thread, threads);
  for (i64 row = range.begin; row < range.end; ++row) {
    alignas(64) f32 kept[scratch];
    u32 side = 1, store = 1;
    forEach<count>([&]<u32 s>() { store += TypeAt<s, Stages>::sideCount; });
    forEach<count>([&]<u32 s>() {
      using Stage = TypeAt<s, Stages>;
      const f32 *x = static_cast<const f32 *>(operands[0]) + row * k;
      runStage<Stage, k>(s == 0 ? x : kept, operands + side, operands + store,
                         row, s + 1 < count ? kept : nullptr);
      side += Stage::sideCount;
      store += Stage::storeCount;
    });
  }
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_ROWWISE_H

/// \file
/// What a printed step function does around its launches.
#ifndef LATHE_KERNELS_CPU_STEP_H
#define LATHE_KERNELS_CPU_STEP_H

#include "kernels/cpu/simd/Simd.h"

namespace lathe::kernels::inline LATHE_ISA {

/// For its lifetime this thread rounds to nearest even, keeps denormals and
/// masks floating-point exceptions (docs/numerics.md); then MXCSR is as before.
class StepScope {
public:
  LATHE_INLINE StepScope() : saved(__builtin_ia32_stmxcsr()) {
    __builtin_ia32_ldmxcsr(0x1f80);
  }
  LATHE_INLINE ~StepScope() { __builtin_ia32_ldmxcsr(saved); }
  StepScope(const StepScope &) = delete;
  StepScope &operator=(const StepScope &) = delete;

private:
  u32 saved;
};

/// Stores when a launch starts in this thread, if the step is traced.
LATHE_INLINE void traceBegin(const StepArgs *args, u32 launch, u32 thread,
                             u32 threads) {
  if (__builtin_expect(args->trace != nullptr, 0))
    args->trace[(u64(launch) * threads + thread) * 2] = timeStamp();
}

/// Stores when it ends.
LATHE_INLINE void traceEnd(const StepArgs *args, u32 launch, u32 thread,
                           u32 threads) {
  if (__builtin_expect(args->trace != nullptr, 0))
    args->trace[(u64(launch) * threads + thread) * 2 + 1] = timeStamp();
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_STEP_H

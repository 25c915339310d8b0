/// \file
/// The barrier between dependent launches: spin, then sleep on a futex.
#ifndef LATHE_KERNELS_CPU_BARRIER_H
#define LATHE_KERNELS_CPU_BARRIER_H

#include "kernels/cpu/simd/Simd.h"

namespace lathe::kernels::inline LATHE_ISA {

/// futex(2) on a word private to the process, with no time limit.
inline i64 futex(u32 *word, int operation, u32 value) {
  constexpr i64 futexNumber = 202;
  i64 result = futexNumber;
  register i64 timeout asm("r10") = 0;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(word), "S"(i64(operation)), "d"(i64(value)), "r"(timeout)
               : "rcx", "r11", "memory");
  return result;
}

/// Waits until all `threads` threads of the team have arrived. What each of
/// them wrote before is then visible to all. Spins for args->spinLimit pauses,
/// then sleeps; only the last to arrive makes a system call to wake, and only
/// if somebody sleeps.
inline void barrier(const StepArgs *args, u32 threads) {
  constexpr int futexWait = 0 | 128, futexWake = 1 | 128;
  if (threads == 1)
    return;
  StepBarrier *state = args->barrier;
  // It cannot move on before this thread has arrived.
  u32 generation = __atomic_load_n(&state->generation, __ATOMIC_RELAXED);
  if (__atomic_add_fetch(&state->arrived, 1, __ATOMIC_ACQ_REL) == threads) {
    __atomic_store_n(&state->arrived, 0, __ATOMIC_RELAXED);
    // Sequentially consistent with the sleeper below, which counts itself
    // before it looks at the generation: either it sees the new generation, or
    // it is seen here.
    __atomic_store_n(&state->generation, generation + 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&state->sleepers, __ATOMIC_SEQ_CST) != 0)
      futex(&state->generation, futexWake, 0x7fffffff);
    return;
  }
  auto passed = [&] {
    return __atomic_load_n(&state->generation, __ATOMIC_ACQUIRE) != generation;
  };
  for (u32 spin = 0; spin < args->spinLimit; ++spin) {
    if (passed())
      return;
    pauseThread();
  }
  __atomic_fetch_add(&state->sleepers, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&state->generation, __ATOMIC_SEQ_CST) == generation)
    futex(&state->generation, futexWait, generation);
  __atomic_fetch_sub(&state->sleepers, 1, __ATOMIC_RELAXED);
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_BARRIER_H

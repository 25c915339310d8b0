/// \file
/// The code object of the tests' engine: entry points and kernels that leave a
/// mark, so that a test can see that they ran.
#include "kernels/abi/StepArgs.h"

using namespace lathe;

extern "C" {

void lathe_body_v1(const StepArgs *args, u32 thread, u32 threads) {
  args->hidden[0] = 1.0f + f32(thread) + 10.0f * f32(threads);
}

#ifndef LATHE_TEST_NO_HEAD
void lathe_head_v1(const StepArgs *args, u32, u32) { args->logits[0] = 2.0f; }
#endif

void lathe_kernel_0(const StepArgs *args, const void *const *, u32 rows, u32,
                    u32) {
  args->logits[0] = 100.0f + f32(rows);
}

void lathe_kernel_1(const StepArgs *args, const void *const *, u32 rows, u32,
                    u32) {
  args->logits[0] = 200.0f + f32(rows);
}

void lathe_kernel_2(const StepArgs *args, const void *const *, u32 rows, u32,
                    u32) {
  args->logits[0] = 300.0f + f32(rows);
}

} // extern "C"

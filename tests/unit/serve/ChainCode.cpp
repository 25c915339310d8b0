/// \file
/// The code object of the chain model (ChainModel.h), built as the compiler
/// builds code: nothing but itself inside.
#include "kernels/abi/StepArgs.h"
#include "tests/unit/serve/ChainTable.h"

using namespace lathe;
using namespace lathe::tests;

extern "C" {

void lathe_body_v1(const StepArgs *args, u32 thread, u32) {
  if (thread != 0)
    return;
  const f32 *table = reinterpret_cast<const f32 *>(args->weights + tableOffset);
  for (u32 i = 0; i < u32(table[tableVocab * tableVocab]); ++i)
    __builtin_ia32_pause();
  for (u32 row = 0; row < args->rows; ++row)
    args->hidden[row * tableHidden] = f32(args->tokens[row]);
}

void lathe_head_v1(const StepArgs *args, u32 thread, u32) {
  if (thread != 0)
    return;
  const f32 *table = reinterpret_cast<const f32 *>(args->weights + tableOffset);
  for (u32 row = 0; row < args->headRows; ++row) {
    const f32 *logits =
        table + u32(args->headInput[row * tableHidden]) * tableVocab;
    for (u32 i = 0; i < tableVocab; ++i)
      args->logits[row * tableVocab + i] = logits[i];
  }
}

// The program names kernels; nobody calls them.
void lathe_kernel_0(const StepArgs *, const void *const *, u32, u32, u32) {}
void lathe_kernel_1(const StepArgs *, const void *const *, u32, u32, u32) {}
void lathe_kernel_2(const StepArgs *, const void *const *, u32, u32, u32) {}

} // extern "C"

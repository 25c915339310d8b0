// Built with -ffreestanding -nostdinc: no header may need a library.
#include "kernels/formats/Blocks.h"
#include "runtime/support/Fp16.h"

namespace lathe::tests {

static_assert(kernels::iq4Values[8] == 1);

/// Element k = 1 of row 2 of a block.
f32 freestandingValue(const kernels::Q4_1R16 &block) {
  return runtime::f16ToF32(block.d[2]) * f32(block.qs[0][2][1] & 15) +
         runtime::f16ToF32(block.m[2]);
}

} // namespace lathe::tests

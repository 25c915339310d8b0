/// \file
/// What an edit makes of a logit, for the runtime and for generated kernels.
/// Freestanding.
#ifndef LATHE_KERNELS_SAMPLE_EDIT_H
#define LATHE_KERNELS_SAMPLE_EDIT_H

#include "kernels/abi/StepArgs.h"

namespace lathe::kernels {

/// Inlined: the code of one ISA layer must not become another's.
__attribute__((always_inline)) constexpr f32 applyEdit(const PickEdit &edit,
                                                       f32 logit) {
  f32 scaled = logit > 0 ? logit / edit.factor : logit * edit.factor;
  return scaled + edit.addend;
}

} // namespace lathe::kernels

#endif // LATHE_KERNELS_SAMPLE_EDIT_H

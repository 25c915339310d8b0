/// \file
/// Loops over a row of logits. Results do not depend on the CPU: f32
/// operations in a fixed order, the exp of docs/numerics.md.
#ifndef LATHE_RUNTIME_SAMPLE_LOGITMATH_H
#define LATHE_RUNTIME_SAMPLE_LOGITMATH_H

#include "kernels/abi/Types.h"

#include <span>

namespace lathe::runtime {

/// Ids of one slice of a sum over the vocabulary.
inline constexpr u32 softmaxSlice = 4096;

/// The largest of a row and whether it is sound.
struct RowMaximum {
  f32 value = 0;
  /// Some logit is NaN or +infinity; `value` means nothing then.
  bool isBroken = false;
};

/// The maximum of a row that is not empty; -infinity if all are.
RowMaximum rowMaximum(std::span<const f32> row);

/// The first index that holds `value`, which must occur.
u32 firstIndexOf(std::span<const f32> row, f32 value);

/// exp as docs/numerics.md defines it.
f32 contractExp(f32 x);

/// The sum of exp(row[i] - maximum). Slices of softmaxSlice ids; in each a lane
/// sum (numerics.md) in f32 with lane = i mod 16; slices added in f64 in order.
/// -infinity adds nothing.
f64 sumOfExp(std::span<const f32> row, f32 maximum);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SAMPLE_LOGITMATH_H

/// \file
/// What generation tells of a token.
#ifndef LATHE_RUNTIME_SCHEDULE_GENERATEDTOKEN_H
#define LATHE_RUNTIME_SCHEDULE_GENERATEDTOKEN_H

#include "kernels/abi/Types.h"

#include <span>

namespace lathe::runtime {

/// A token as it is generated.
struct GeneratedToken {
  i32 token;
  u32 position; ///< In the sequence.
  /// The model's logits [vocab] that it was drawn from, for log-probabilities;
  /// valid during the call. Empty unless they are asked for.
  std::span<const f32> logits;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_GENERATEDTOKEN_H

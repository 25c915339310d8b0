/// \file
/// Where the chain model's code finds its table.
#ifndef LATHE_TESTS_UNIT_SERVE_CHAINTABLE_H
#define LATHE_TESTS_UNIT_SERVE_CHAINTABLE_H

#include "kernels/abi/Types.h"

namespace lathe::tests {

inline constexpr u32 tableVocab = 512;
inline constexpr u32 tableHidden = 32;

/// In the weights: f32 [tableVocab + 1][tableVocab], the logits that follow
/// each token; the last row begins with the pauses of a step.
inline constexpr u64 tableOffset = 1280;

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_SERVE_CHAINTABLE_H

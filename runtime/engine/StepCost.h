/// \file
/// What a launch of a program must move and compute in a step: the account that
/// `lathe explain` and the structure test check times and engines against.
#ifndef LATHE_RUNTIME_ENGINE_STEPCOST_H
#define LATHE_RUNTIME_ENGINE_STEPCOST_H

#include "codegen/engine/engine_generated.h"
#include "kernels/abi/Types.h"

#include <string>
#include <vector>

namespace lathe::runtime {

/// The rows of a step, as far as costs depend on them.
struct StepShape {
  struct Sequence {
    u32 start = 0; ///< Absolute position of its first row.
    u32 rows = 0;
    u32 wanted = 1; ///< Last rows that want hidden states, at most `rows`.
  };
  std::vector<Sequence> sequences;
  u32 headRows = 0; ///< Rows of `head`.

  u64 rows() const;
  /// Only the rows that `wanted` launches run for.
  StepShape wantedPart() const;
};

/// Bytes that a launch reads and writes at least, and its operations. A byte
/// counts once however often caches are asked for it.
struct LaunchCost {
  u64 weightBytes = 0;     ///< Read, as the engine stores them.
  u64 kvBytes = 0;         ///< Of keys and values, read or written.
  u64 activationBytes = 0; ///< Rows between launches, read and written.
  /// Two for each multiply-add of a matrix or of attention; those of norms,
  /// rotations and element-wise functions are not counted.
  u64 int8Ops = 0;
  u64 f32Ops = 0;
  u64 bf16Ops = 0; ///< With BF16 weights, which some layers multiply as such.

  u64 bytes() const { return weightBytes + kvBytes + activationBytes; }
  u64 ops() const { return int8Ops + f32Ops + bf16Ops; }
  LaunchCost &operator+=(const LaunchCost &other);
  bool operator==(const LaunchCost &) const = default;
};

/// The least that a launch of a validated manifest's program costs in a step.
///
/// Weights are charged whole, but tables by the rows that the step looks up.
/// Attention is charged the keys and values that any of a sequence's rows see,
/// once for all query heads, and the multiply-adds that its rows need, masked
/// ones not. Activations of an engine that does not tell their sizes are 0.
LaunchCost costOf(const engine::fb::Manifest &manifest,
                  const engine::fb::Program &program,
                  const engine::fb::Launch &launch, const StepShape &shape);

/// Formats of the matrices that a launch reads, in the order of its operands,
/// each once: "Q5_0", "Q8_0". Vectors and tables of other launches are none.
std::vector<std::string> weightFormats(const engine::fb::Manifest &manifest,
                                       const engine::fb::Launch &launch);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_ENGINE_STEPCOST_H

/// \file
/// What the machine does at most, and the least time that a step takes on it.
#ifndef LATHE_TOOLS_LATHE_STEPLIMITS_H
#define LATHE_TOOLS_LATHE_STEPLIMITS_H

#include "runtime/engine/StepCost.h"
#include "runtime/support/Result.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lathe::tools {

/// Rates per second.
struct StepLimits {
  f64 bandwidth = 0; ///< Bytes.
  f64 int8Ops = 0;   ///< Two for each multiply-add, as the next.
  f64 f32Ops = 0;
  f64 bf16Ops = 0; ///< f32Ops where BF16 weights are multiplied as f32.

  /// Measures them, in about a second, with the instructions of the CPU's best
  /// ISA layer; for code of target `target` ("cpu:avx2").
  static runtime::Result<StepLimits> measure(u32 threads,
                                             std::string_view target);

  f64 bandwidthTime(const runtime::LaunchCost &cost) const {
    return f64(cost.bytes()) / bandwidth;
  }
  f64 computeTime(const runtime::LaunchCost &cost) const {
    return f64(cost.int8Ops) / int8Ops + f64(cost.f32Ops) / f32Ops +
           f64(cost.bf16Ops) / bf16Ops;
  }
  /// The least time that the cost takes, seconds.
  f64 time(const runtime::LaunchCost &cost) const {
    return std::max(bandwidthTime(cost), computeTime(cost));
  }
  /// The arithmetic that most of computeTime goes to: "int8", "f32", "bf16".
  const char *arithmeticOf(const runtime::LaunchCost &cost) const;

  bool multipliesBf16() const { return bf16Ops != f32Ops; }
  /// "memory 35.0 GB/s, int8 930 Gop/s, f32 234 Gop/s"
  std::string text() const;
  nlohmann::ordered_json json() const;
};

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_STEPLIMITS_H

/// \file
/// What this machine can do at most, measured now: the yardstick of bench,
/// explain and the kernels' micro-benchmark.
#ifndef LATHE_RUNTIME_DEVICE_MACHINELIMITS_H
#define LATHE_RUNTIME_DEVICE_MACHINELIMITS_H

#include "kernels/abi/Types.h"
#include "runtime/support/Result.h"

#include <string_view>

namespace lathe::runtime {

/// Bytes per second that a team of so many threads reads from memory: the best
/// of 1, 2 and 4 sequential streams per thread over a buffer of several times
/// the last-level cache. Takes about half a second. Errors: Exhausted.
Result<f64> measureBandwidth(u32 threads);

/// Multiply-accumulates of int8 per second that a team reaches from registers
/// with the instructions of ISA layer `isa`, which this CPU must have. Takes
/// about 0.1 s. Errors: Exhausted.
Result<f64> measureInt8(u32 threads, std::string_view isa);

/// Fused multiply-adds of f32 per second, likewise (a product and a sum where
/// the layer has no fused one). Takes about 0.1 s. Errors: Exhausted.
Result<f64> measureF32(u32 threads, std::string_view isa);

/// Multiply-adds of bf16 into f32 per second, likewise; where the layer has no
/// such instruction, those of f32. Takes about 0.1 s. Errors: Exhausted.
Result<f64> measureBf16(u32 threads, std::string_view isa);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_DEVICE_MACHINELIMITS_H

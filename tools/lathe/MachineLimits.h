/// \file
/// What this machine can do at most, measured now: the yardstick of bench and
/// explain.
#ifndef LATHE_TOOLS_LATHE_MACHINELIMITS_H
#define LATHE_TOOLS_LATHE_MACHINELIMITS_H

#include "runtime/device/CpuFeatures.h"
#include "runtime/device/ThreadTeam.h"
#include "runtime/support/Result.h"

namespace lathe::tools {

/// Bytes per second that a team of so many threads reads from memory: the best
/// of 1, 2 and 4 sequential streams per thread over a buffer of several times
/// the last-level cache. Takes about half a second. Errors: Exhausted.
runtime::Result<f64> measureBandwidth(u32 threads);

/// Multiply-accumulates of int8 per second that a team reaches from registers,
/// with the best instructions that this CPU has. Takes about 0.1 s. Errors:
/// Exhausted.
runtime::Result<f64> measureInt8(u32 threads, const runtime::CpuFeatures &cpu);

/// Fused multiply-adds of f32 per second, likewise (a product and a sum where
/// the CPU has no fused one). Takes about 0.1 s. Errors: Exhausted.
runtime::Result<f64> measureF32(u32 threads, const runtime::CpuFeatures &cpu);

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_MACHINELIMITS_H

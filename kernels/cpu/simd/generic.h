/// \file
/// ISA layer `generic`: x86-64 as every CPU has it, through plain vectors.
#ifndef LATHE_KERNELS_CPU_SIMD_GENERIC_H
#define LATHE_KERNELS_CPU_SIMD_GENERIC_H

#include "kernels/cpu/simd/plain.h"

namespace lathe::kernels::inline LATHE_ISA {

/// Most activation rows of a gemm tile.
constexpr u32 tileRows(bool inHalves) { return 4; }

inline constexpr bool brainDots = false;

/// Queries of an attention tile.
inline constexpr u32 attentionQueries = 4;

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_SIMD_GENERIC_H

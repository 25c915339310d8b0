/// \file
/// The ISA layer that a macro chose: lane types (Vector.h) and the primitives
/// of one of generic.h, avx2.h and avx512.h. Each layer defines the same names:
///
///   fma(a, b, c)           one rounding, lane by lane
///   roundToInt(x)          nearest even; |x| < 2^22
///   loadHalf(u16 *)        `width` f16 values, exact
///   storeHalf(u16 *, x)    `width` values rounded to f16, nearest even
///   brainDots              whether BF16 weights are multiplied with
///   activations
///                          that are rounded to bf16, by
///   dotBrain(sum, w, x)    two k per lane: fma(w1, x1, sum), then fma(w0, x0,
///                          it); subnormals count as 0 (only if brainDots)
///   lookup16(index, table) bytes of a 16-entry table; index bytes are < 16
///   Dot<max, offset, halves>  exact dot products of a 32-block:
///     Codes prepare(bytes)      weight codes (u8 <= max) of width rows x 4 k
///     void starts(block, s)     two words per activation block, for begin
///     Acc begin(word)           an empty sum; whole: s[0], half h: s[h]
///     Acc add(acc, codes, a)    adds 4 k; a is 4 int8 activations
///     Ints finish(acc, s[1])    whole only: sum of (code - offset) * a
///     Scale scale(Ints)         halves only: integer scales, |scale| < 256
///     Ints finish(a0, a1, s0, s1)  halves only: s0 * I0 + s1 * I1
///   tileRows(halves)       most activation rows of a gemm tile
///   attentionQueries       queries of an attention tile
///
/// Skeletons use nothing else that depends on the ISA.
#ifndef LATHE_KERNELS_CPU_SIMD_SIMD_H
#define LATHE_KERNELS_CPU_SIMD_SIMD_H

#include "kernels/cpu/simd/Vector.h"

#if defined(LATHE_ISA_AVX512)
#include "kernels/cpu/simd/avx512.h"
#elif defined(LATHE_ISA_AVX2)
#include "kernels/cpu/simd/avx2.h"
#else
#include "kernels/cpu/simd/generic.h"
#endif

namespace lathe::kernels::inline LATHE_ISA {

/// Tells the CPU that this thread spins.
LATHE_INLINE void pauseThread() { __builtin_ia32_pause(); }

/// The time stamp counter.
LATHE_INLINE u64 timeStamp() { return __builtin_ia32_rdtsc(); }

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_SIMD_SIMD_H

/// \file
/// ISA layer `avx512`: F, BW, VL, DQ, VNNI, and FMA and F16C of AVX2; and
/// `avx512bf16`, which has BF16, too. With LATHE_SIMD_EMULATE the same layers
/// in plain vectors, for any CPU.
#ifndef LATHE_KERNELS_CPU_SIMD_AVX512_H
#define LATHE_KERNELS_CPU_SIMD_AVX512_H

#include "kernels/cpu/simd/Vector.h"

#ifdef LATHE_SIMD_EMULATE
#include "kernels/cpu/simd/plain.h"
#endif

namespace lathe::kernels::inline LATHE_ISA {

/// Most activation rows of a gemm tile.
constexpr u32 tileRows(bool inHalves) { return 8; }

#ifdef LATHE_ISA_AVX512BF16
inline constexpr bool brainDots = true;
#else
inline constexpr bool brainDots = false;
#endif

/// Queries of an attention tile.
inline constexpr u32 attentionQueries = 16;

#ifndef LATHE_SIMD_EMULATE

LATHE_INLINE Floats fma(Floats a, Floats b, Floats c) {
  return {__builtin_elementwise_fma(a.v, b.v, c.v)};
}

/// Rounding by MXCSR, which a step keeps at nearest even.
inline constexpr int currentRounding = 4;

LATHE_INLINE Ints roundToInt(Floats x) {
  return {bitsAs<IntLanes>(__builtin_ia32_cvtps2dq512_mask(
      x.v, IntLanes{}, u16(0xffff), currentRounding))};
}

LATHE_INLINE Floats loadHalf(const u16 *from) {
  using Row = i16 __attribute__((vector_size(32)));
  return {__builtin_ia32_vcvtph2ps512_mask(load<Row>(from), FloatLanes{},
                                           u16(0xffff), currentRounding)};
}

LATHE_INLINE void storeHalf(u16 *to, Floats x) {
  using Row = i16 __attribute__((vector_size(32)));
  store(to, __builtin_ia32_vcvtps2ph512_mask(x.v, 0, Row{}, u16(0xffff)));
}

#ifdef LATHE_ISA_AVX512BF16
LATHE_INLINE Floats dotBrain(Floats sum, UIntLanes w, UIntLanes x) {
  using Brains = __bf16 __attribute__((vector_size(64)));
  return {
      __builtin_ia32_dpbf16ps_512(sum.v, bitsAs<Brains>(w), bitsAs<Brains>(x))};
}
#endif

LATHE_INLINE ByteLanes lookup16(ByteLanes index, const u8 (&table)[16]) {
  using Quarter = i64 __attribute__((vector_size(16)));
  using Table = i64 __attribute__((vector_size(64)));
  using Chars = char __attribute__((vector_size(64)));
  Quarter quarter = load<Quarter>(table);
  Table all = __builtin_shufflevector(quarter, quarter, 0, 1, 0, 1, 0, 1, 0, 1);
  return bitsAs<ByteLanes>(
      __builtin_ia32_pshufb512(bitsAs<Chars>(all), bitsAs<Chars>(index)));
}

template <u32 maxCode, u32 offset, bool inHalves> struct Dot {
  using Acc = Ints;
  using Scale = Ints;
  using Codes = ByteLanes;

  static LATHE_INLINE Codes prepare(ByteLanes bytes) { return bytes; }
  static LATHE_INLINE void starts(const ActivationBlock &block, i32 *words) {
    i32 half[2];
    for (u32 h = 0; h < 2; ++h)
      half[h] = block.laneSum[h][0] + block.laneSum[h][1];
    words[0] = -i32(offset) * (inHalves ? half[0] : half[0] + half[1]);
    words[1] = -i32(offset) * half[1];
  }
  static LATHE_INLINE Acc begin(i32 word) { return Ints::splat(word); }
  static LATHE_INLINE Acc add(Acc acc, Codes codes, i32 activations) {
    return {__builtin_ia32_vpdpbusd512(acc.v, bitsAs<IntLanes>(codes),
                                       Ints::splat(activations).v)};
  }
  static LATHE_INLINE Ints finish(Acc acc, i32) { return acc; }
  static LATHE_INLINE Scale scale(Ints scales) { return scales; }
  static LATHE_INLINE Ints finish(Acc a0, Acc a1, Scale s0, Scale s1) {
    return a0 * s0 + a1 * s1;
  }
};

#endif // LATHE_SIMD_EMULATE

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_SIMD_AVX512_H

/// \file
/// ISA layer `avx2`: AVX2, FMA and F16C; 8 lanes, so that a 16-row block is two
/// native rows.
#ifndef LATHE_KERNELS_CPU_SIMD_AVX2_H
#define LATHE_KERNELS_CPU_SIMD_AVX2_H

#include "kernels/cpu/simd/Vector.h"

namespace lathe::kernels::inline LATHE_ISA {

/// Most activation rows of a gemm tile.
constexpr u32 tileRows(bool inHalves) { return inHalves ? 4 : 8; }

inline constexpr bool brainDots = false;

/// Queries of an attention tile.
inline constexpr u32 attentionQueries = 4;

LATHE_INLINE Floats fma(Floats a, Floats b, Floats c) {
  return {__builtin_elementwise_fma(a.v, b.v, c.v)};
}

LATHE_INLINE Ints roundToInt(Floats x) {
  return {__builtin_ia32_cvtps2dq256(x.v)};
}

LATHE_INLINE Floats loadHalf(const u16 *from) {
  using Row = i16 __attribute__((vector_size(16)));
  return {__builtin_ia32_vcvtph2ps256(load<Row>(from))};
}

LATHE_INLINE void storeHalf(u16 *to, Floats x) {
  store(to, __builtin_ia32_vcvtps2ph256(x.v, 0));
}

using Chars = char __attribute__((vector_size(32)));

LATHE_INLINE ByteLanes lookup16(ByteLanes index, const u8 (&table)[16]) {
  using Half = i64 __attribute__((vector_size(16)));
  using Table = i64 __attribute__((vector_size(32)));
  Half half = load<Half>(table);
  Table all = __builtin_shufflevector(half, half, 0, 1, 0, 1);
  return bitsAs<ByteLanes>(
      __builtin_ia32_pshufb256(bitsAs<Chars>(all), bitsAs<Chars>(index)));
}

/// u8 codes times s8 activations.
LATHE_INLINE ShortLanes multiplyPairs(ByteLanes codes, Chars activations) {
  return __builtin_ia32_pmaddubsw256(bitsAs<Chars>(codes), activations);
}

/// int16 pairs into int32: codes up to
/// 63, each int16 lane starting at -bias times the activations it sees, so that
/// its final value fits; wrapping on the way is harmless).
template <u32 maxCode, u32 offset, bool inHalves> struct Dot {
  static_assert(maxCode <= 63);
  using Acc = ShortLanes;
  using Scale = ShortLanes;
  using Codes = ByteLanes;
  /// Sums of codes up to 31 over a whole block need a bias even where the
  /// format has no offset; finish takes it back.
  static constexpr i32 bias = offset == 0 && !inHalves && maxCode > 15
                                  ? i32(maxCode + 1) / 2
                                  : i32(offset);
  static constexpr i32 restored = bias - i32(offset);

  static LATHE_INLINE Codes prepare(ByteLanes bytes) { return bytes; }
  static LATHE_INLINE void starts(const ActivationBlock &block, i32 *words) {
    i32 sum = 0;
    for (u32 h = 0; h < 2; ++h) {
      i32 even = block.laneSum[h][0], odd = block.laneSum[h][1];
      sum += even + odd;
      if (!inHalves && h == 0) {
        even += block.laneSum[1][0];
        odd += block.laneSum[1][1];
      }
      words[h] = i32(u32(-bias * even) & 0xffff) | i32(u32(-bias * odd) << 16);
    }
    if constexpr (restored != 0)
      words[1] = restored * sum;
  }
  static LATHE_INLINE Acc begin(i32 word) {
    if constexpr (bias == 0)
      return Acc{};
    else
      return bitsAs<Acc>(Ints::splat(word));
  }
  static LATHE_INLINE Acc add(Acc acc, Codes codes, i32 activations) {
    return acc + multiplyPairs(codes, bitsAs<Chars>(Ints::splat(activations)));
  }
  static LATHE_INLINE Ints finish(Acc acc, i32 restore) {
    Ints sum = {__builtin_ia32_pmaddwd256(acc, ShortLanes{} + i16(1))};
    if constexpr (restored != 0)
      sum = sum + Ints::splat(restore);
    return sum;
  }
  static LATHE_INLINE Scale scale(Ints scales) {
    IntLanes low = scales.v & 0xffff;
    return bitsAs<ShortLanes>(
        low | bitsAs<IntLanes>(bitsAs<UIntLanes>(scales.v) << 16));
  }
  static LATHE_INLINE Ints finish(Acc a0, Acc a1, Scale s0, Scale s1) {
    return {__builtin_ia32_pmaddwd256(a0, s0) +
            __builtin_ia32_pmaddwd256(a1, s1)};
  }
};

/// Whole bytes (offset 128): maddubs would saturate, so the sign moves to the
/// activations and each product pair is widened at once.
template <> struct Dot<255, 128, false> {
  using Acc = Ints;
  struct Codes {
    ByteLanes magnitude;
    Chars sign;
  };

  static LATHE_INLINE Codes prepare(ByteLanes bytes) {
    using SignedChars = i8 __attribute__((vector_size(32)));
    ByteLanes value = bytes ^ u8(0x80);
    SignedChars magnitude =
        __builtin_elementwise_abs(bitsAs<SignedChars>(value));
    return {bitsAs<ByteLanes>(magnitude), bitsAs<Chars>(value)};
  }
  static LATHE_INLINE void starts(const ActivationBlock &, i32 *words) {
    words[0] = words[1] = 0;
  }
  static LATHE_INLINE Acc begin(i32) { return {}; }
  static LATHE_INLINE Acc add(Acc acc, Codes codes, i32 activations) {
    Chars moved = __builtin_ia32_psignb256(
        bitsAs<Chars>(Ints::splat(activations)), codes.sign);
    return {acc.v +
            __builtin_ia32_pmaddwd256(multiplyPairs(codes.magnitude, moved),
                                      ShortLanes{} + i16(1))};
  }
  static LATHE_INLINE Ints finish(Acc acc, i32) { return acc; }
};

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_SIMD_AVX2_H

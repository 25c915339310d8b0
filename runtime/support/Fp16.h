/// \file
/// Exact conversions between f32 and the two 16-bit float formats, as bit
/// patterns. Integer arithmetic only (but for one exact product), so the result
/// depends on no CPU feature, rounding mode or library; usable in constant
/// expressions and freestanding.
///
/// NaNs become quiet and keep the payload bits that fit, as the F16C and
/// AVX512_BF16 instructions do.
#ifndef LATHE_RUNTIME_SUPPORT_FP16_H
#define LATHE_RUNTIME_SUPPORT_FP16_H

#include "kernels/abi/Types.h"

namespace lathe::runtime {

/// The value of an IEEE binary16 bit pattern; exact for every input.
constexpr f32 f16ToF32(u16 half) {
  u32 sign = u32(half & 0x8000u) << 16;
  u32 exponent = (half >> 10) & 0x1fu;
  u32 mantissa = half & 0x3ffu;
  u32 bits;
  if (exponent == 0x1f) {
    bits = 0x7f800000u | (mantissa << 13);
    if (mantissa)
      bits |= 0x00400000u;
  } else if (exponent == 0) {
    // Zero or subnormal: a multiple of 2^-24, which is a normal f32.
    bits = __builtin_bit_cast(u32, f32(i32(mantissa)) * 0x1p-24f);
  } else {
    bits = ((exponent + 112) << 23) | (mantissa << 13);
  }
  return __builtin_bit_cast(f32, bits | sign);
}

/// The nearest binary16 bit pattern, ties to even; |x| >= 65520 gives infinity.
constexpr u16 f32ToF16(f32 value) {
  u32 bits = __builtin_bit_cast(u32, value);
  u32 sign = (bits >> 16) & 0x8000u;
  u32 magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return u16(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) // 65520, halfway to the next power of two
    return u16(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) { // 2^-14, the least normal binary16
    u32 rebased = magnitude - (112u << 23);
    rebased += 0xfffu + ((rebased >> 13) & 1u);
    return u16(sign | (rebased >> 13));
  }
  if (magnitude <= 0x33000000u) // 2^-25 ties to zero
    return u16(sign);
  u32 significand = (magnitude & 0x7fffffu) | 0x800000u;
  u32 shift = 126u - (magnitude >> 23); // to units of 2^-24; 14..24
  u32 rest = significand & ((1u << shift) - 1u);
  u32 half = 1u << (shift - 1u);
  u32 result = significand >> shift;
  if (rest > half || (rest == half && (result & 1u)))
    ++result;
  return u16(sign | result);
}

/// The value of a bfloat16 bit pattern: its 16 bits above 16 zero bits, NaN
/// payloads untouched.
constexpr f32 bf16ToF32(u16 brain) {
  return __builtin_bit_cast(f32, u32(brain) << 16);
}

/// The nearest bfloat16 bit pattern, ties to even.
constexpr u16 f32ToBf16(f32 value) {
  u32 bits = __builtin_bit_cast(u32, value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return u16((bits >> 16) | 0x40u);
  return u16((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// True if the binary16 bit pattern is an infinity or a NaN.
constexpr bool f16IsNonFinite(u16 half) { return (half & 0x7c00u) == 0x7c00u; }

/// True if the bfloat16 bit pattern is an infinity or a NaN.
constexpr bool bf16IsNonFinite(u16 brain) {
  return (brain & 0x7f80u) == 0x7f80u;
}

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SUPPORT_FP16_H

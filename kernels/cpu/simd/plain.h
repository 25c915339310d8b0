/// \file
/// Primitives in plain 64-byte vectors, with no instruction named: the body of
/// generic.h, and of avx512.h under LATHE_SIMD_EMULATE. Included by these only.
#ifndef LATHE_KERNELS_CPU_SIMD_PLAIN_H
#define LATHE_KERNELS_CPU_SIMD_PLAIN_H

#include "kernels/cpu/simd/Vector.h"

namespace lathe::kernels::inline LATHE_ISA {

#ifdef __FMA__
LATHE_INLINE Floats fma(Floats a, Floats b, Floats c) {
  return {__builtin_elementwise_fma(a.v, b.v, c.v)};
}
#else
using DoubleLanes = f64 __attribute__((vector_size(8 * width)));
using LongLanes = i64 __attribute__((vector_size(8 * width)));
using WordLanes = i32 __attribute__((vector_size(8 * width)));

/// The low words of f64 values, to find those halfway between two f32.
inline constexpr WordLanes lowWordMask = {
    0x1fffffff, 0, 0x1fffffff, 0, 0x1fffffff, 0, 0x1fffffff, 0,
    0x1fffffff, 0, 0x1fffffff, 0, 0x1fffffff, 0, 0x1fffffff, 0,
    0x1fffffff, 0, 0x1fffffff, 0, 0x1fffffff, 0, 0x1fffffff, 0,
    0x1fffffff, 0, 0x1fffffff, 0, 0x1fffffff, 0, 0x1fffffff, 0};
inline constexpr WordLanes halfwayWords = {
    0x10000000, 1, 0x10000000, 1, 0x10000000, 1, 0x10000000, 1,
    0x10000000, 1, 0x10000000, 1, 0x10000000, 1, 0x10000000, 1,
    0x10000000, 1, 0x10000000, 1, 0x10000000, 1, 0x10000000, 1,
    0x10000000, 1, 0x10000000, 1, 0x10000000, 1, 0x10000000, 1};

/// p + c with p exact, rounded once: s = p + c is first rounded to odd, so that
/// rounding it again to f32 is right whatever the exponent.
inline __attribute__((noinline, cold)) Floats roundOnce(DoubleLanes p,
                                                        DoubleLanes c,
                                                        DoubleLanes s) {
  DoubleLanes fromC = s - p;
  DoubleLanes error = (p - (s - fromC)) + (c - fromC);
  LongLanes bits = bitsAs<LongLanes>(s);
  // Away from zero if the error has the sign of s. A NaN error (s not finite)
  // fails the comparison with itself.
  LongLanes sameSign = (bits ^ bitsAs<LongLanes>(error)) >= 0;
  LongLanes step = sameSign ? LongLanes{} + 1 : LongLanes{} - 1;
  LongLanes inexact = (error != DoubleLanes{}) & (error == error);
  LongLanes even = (bits & 1) == 0;
  bits += step & inexact & even;
  return {__builtin_convertvector(bitsAs<DoubleLanes>(bits), FloatLanes)};
}

/// Out of line: inlined, it makes kernels slow to compile and no faster.
inline __attribute__((noinline)) void fmaInto(const Floats &a, const Floats &b,
                                              const Floats &c, Floats &r) {
  DoubleLanes p = __builtin_convertvector(a.v, DoubleLanes) *
                  __builtin_convertvector(b.v, DoubleLanes);
  DoubleLanes wideC = __builtin_convertvector(c.v, DoubleLanes);
  DoubleLanes s = p + wideC;
  Floats rounded = {__builtin_convertvector(s, FloatLanes)};
  // Rounding twice differs from once only from halfway between two f32, or
  // where f32 is denormal.
  WordLanes halfway = (bitsAs<WordLanes>(s) & lowWordMask) == halfwayWords;
  IntLanes tiny = (bitsAs<IntLanes>(rounded.v) & 0x7fffffff) <= 0x00800000;
  if (__builtin_expect(__builtin_reduce_or(halfway) | __builtin_reduce_or(tiny),
                       0))
    rounded = roundOnce(p, wideC, s);
  r = rounded;
}

LATHE_INLINE Floats fma(Floats a, Floats b, Floats c) {
  Floats r;
  fmaInto(a, b, c, r);
  return r;
}
#endif

LATHE_INLINE Ints roundToInt(Floats x) {
  FloatLanes shift = Floats::splat(12582912.0f).v; // 1.5 * 2^23
  return {__builtin_convertvector((x.v + shift) - shift, IntLanes)};
}

LATHE_INLINE Floats loadHalf(const u16 *from) {
  UIntLanes half = __builtin_convertvector(load<RowShorts>(from), UIntLanes);
  UIntLanes magnitude = half & 0x7fff;
  UIntLanes normal = (magnitude << 13) + (112u << 23);
  UIntLanes special = (magnitude << 13) + (224u << 23);
  FloatLanes denormal =
      __builtin_convertvector(bitsAs<IntLanes>(magnitude), FloatLanes) *
      0x1p-24f;
  UIntLanes bits = magnitude >= 0x7c00 ? special : normal;
  bits = magnitude < 0x400 ? bitsAs<UIntLanes>(denormal) : bits;
  return {bitsAs<FloatLanes>(bits | (half & 0x8000) << 16)};
}

LATHE_INLINE void storeHalf(u16 *to, Floats x) {
  UIntLanes bits = bitsAs<UIntLanes>(x.v);
  UIntLanes magnitude = bits & 0x7fffffff;
  UIntLanes normal =
      (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // 0.5 has the unit in the last place of a denormal f16.
  UIntLanes denormal =
      bitsAs<UIntLanes>(bitsAs<FloatLanes>(magnitude) + 0.5f) - 0x3f000000;
  UIntLanes half = magnitude < 0x38800000 ? denormal : normal;
  half = magnitude >= 0x47800000 ? UIntLanes{} + 0x7c00 : half;
  half = magnitude > 0x7f800000 ? UIntLanes{} + 0x7e00 : half;
  half |= (bits >> 16) & 0x8000;
  store(to, __builtin_convertvector(half, RowShorts));
}

/// Subnormal lanes become 0 of their sign.
LATHE_INLINE Floats flushSubnormals(Floats x) {
  UIntLanes bits = bitsAs<UIntLanes>(x.v);
  UIntLanes flushed = bits & 0x80000000;
  return {bitsAs<FloatLanes>((bits & 0x7f800000) == 0 ? flushed : bits)};
}

LATHE_INLINE Floats dotBrain(Floats sum, UIntLanes w, UIntLanes x) {
  auto part = [](UIntLanes bits) __attribute__((always_inline)) {
    return flushSubnormals({bitsAs<FloatLanes>(bits)});
  };
  sum = fma(part(w & 0xffff0000), part(x & 0xffff0000), flushSubnormals(sum));
  sum = fma(part(w << 16), part(x << 16), flushSubnormals(sum));
  return flushSubnormals(sum);
}

LATHE_INLINE ByteLanes lookup16(ByteLanes index, const u8 (&table)[16]) {
  ByteLanes result = {};
  for (u32 i = 0; i < 16; ++i)
    result = index == u8(i) ? ByteLanes{} + table[i] : result;
  return result;
}

template <u32 maxCode, u32 offset, bool inHalves> struct Dot {
  using Acc = Ints;
  using Scale = Ints;
  /// The even and the odd bytes as int16.
  struct Codes {
    ShortLanes even, odd;
  };

  static LATHE_INLINE Codes prepare(ByteLanes bytes) {
    UShortLanes pairs = bitsAs<UShortLanes>(bytes);
    return {bitsAs<ShortLanes>(pairs & 0xff), bitsAs<ShortLanes>(pairs >> 8)};
  }
  static LATHE_INLINE void starts(const ActivationBlock &block, i32 *words) {
    i32 half[2];
    for (u32 h = 0; h < 2; ++h)
      half[h] = block.laneSum[h][0] + block.laneSum[h][1];
    words[0] = -i32(offset) * (inHalves ? half[0] : half[0] + half[1]);
    words[1] = -i32(offset) * half[1];
  }
  static LATHE_INLINE Acc begin(i32 word) { return Ints::splat(word); }
  static LATHE_INLINE Acc add(Acc acc, Codes codes, i32 activations) {
    i32 even = i32(i16(i8(activations))) & 0xffff;
    even |= i32(u32(i32(i8(activations >> 16))) << 16);
    i32 odd = i32(i16(i8(activations >> 8))) & 0xffff;
    odd |= i32(u32(activations >> 24) << 16);
    ShortLanes first = codes.even * bitsAs<ShortLanes>(Ints::splat(even));
    ShortLanes second = codes.odd * bitsAs<ShortLanes>(Ints::splat(odd));
    if constexpr (maxCode < 128)
      return {acc.v + sumOfPairs(first + second)};
    else
      return {acc.v + sumOfPairs(first) + sumOfPairs(second)};
  }
  static LATHE_INLINE Ints finish(Acc acc, i32) { return acc; }
  static LATHE_INLINE Scale scale(Ints scales) { return scales; }
  static LATHE_INLINE Ints finish(Acc a0, Acc a1, Scale s0, Scale s1) {
    return a0 * s0 + a1 * s1;
  }

private:
  static LATHE_INLINE IntLanes sumOfPairs(ShortLanes products) {
    IntLanes pairs = bitsAs<IntLanes>(products);
    return (bitsAs<IntLanes>(bitsAs<UIntLanes>(pairs) << 16) >> 16) +
           (pairs >> 16);
  }
};

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_SIMD_PLAIN_H

/// \file
/// The elementary functions of docs/numerics.md on native rows, and its lane
/// trees. No libm: the same operations on every ISA layer.
#ifndef LATHE_KERNELS_CPU_MATH_H
#define LATHE_KERNELS_CPU_MATH_H

#include "kernels/cpu/simd/Simd.h"

namespace lathe::kernels::inline LATHE_ISA {

/// e^x for |x| < 89 by Cephes' polynomial; garbage outside.
LATHE_INLINE Floats expInside(Floats inside) {
  using F = Floats;
  Ints exponent = roundToInt(inside * F::splat(1.44269504f));
  F n = toFloats(exponent);
  F r = fma(n, F::splat(-0.693359375f), inside);
  r = fma(n, F::splat(2.12194440e-4f), r);
  F p = F::splat(1.9875691500e-4f);
  p = fma(p, r, F::splat(1.3981999507e-3f));
  p = fma(p, r, F::splat(8.3334519073e-3f));
  p = fma(p, r, F::splat(4.1665795894e-2f));
  p = fma(p, r, F::splat(1.6666665459e-1f));
  p = fma(p, r, F::splat(5.0000001201e-1f));
  F y = fma(p, r * r, r) + F::splat(1);
  F scale = {bitsAs<FloatLanes>((exponent.v + 127) << 23)};
  return y * scale;
}

/// e^x; exp(0) = 1, exp(-inf) = +0, exp(NaN) = NaN.
LATHE_INLINE Floats exp(Floats x) {
  using F = Floats;
  IntLanes tooSmall = x.v < -87.33654f, tooLarge = x.v > 88.37f;
  F y = expInside(select(tooSmall | tooLarge | (x.v != x.v), F::splat(0), x));
  y = select(tooSmall, F::splat(0), y);
  y = select(tooLarge, F::splat(__builtin_inff()), y);
  return select(x.v != x.v, x, y);
}

/// exp(x) for x <= 0 or NaN, the same bits.
LATHE_INLINE Floats expOfNegative(Floats x) {
  IntLanes inside = x.v >= -87.33654f;
  Floats y = expInside(select(inside, x, Floats::splat(0)));
  return select(inside, y, select(x.v != x.v, x, Floats::splat(0)));
}

LATHE_INLINE Floats tanh(Floats x) {
  Floats one = Floats::splat(1);
  Floats t = exp(Floats::splat(-2) * abs(x));
  Floats magnitude = (one - t) / (one + t);
  IntLanes sign = bitsAs<IntLanes>(x.v) & i32(0x80000000);
  IntLanes bits = (bitsAs<IntLanes>(magnitude.v) & 0x7fffffff) | sign;
  return select(x.v != x.v, x, {bitsAs<FloatLanes>(bits)});
}

/// e^x of one value.
LATHE_INLINE f32 expScalar(f32 x) { return exp(Floats::splat(x)).v[0]; }

/// fma of one value.
LATHE_INLINE f32 fmaScalar(f32 a, f32 b, f32 c) {
  return fma(Floats::splat(a), Floats::splat(b), Floats::splat(c)).v[0];
}

/// Sixteen virtual lanes, for sums whose order the numerics fix.
struct Lanes16 {
  Floats part[halves];

  static LATHE_INLINE Lanes16 splat(f32 x) {
    Lanes16 lanes;
    for (u32 h = 0; h < halves; ++h)
      lanes.part[h] = Floats::splat(x);
    return lanes;
  }
};

/// Tree16 of docs/numerics.md: lanes i + 8, then i + 4, i + 2, i + 1.
LATHE_INLINE f32 treeSum(Lanes16 lanes) {
  f32 s[16];
  __builtin_memcpy(s, &lanes, sizeof(s));
  for (u32 step = 8; step > 0; step /= 2)
    for (u32 i = 0; i < step; ++i)
      s[i] = s[i] + s[i + step];
  return s[0];
}

/// The largest of sixteen lanes without NaN.
LATHE_INLINE f32 largest(Lanes16 lanes) {
  f32 s[16];
  __builtin_memcpy(s, &lanes, sizeof(s));
  for (u32 step = 8; step > 0; step /= 2)
    for (u32 i = 0; i < step; ++i)
      s[i] = s[i] > s[i + step] ? s[i] : s[i + step];
  return s[0];
}

/// 1 / sqrt(mean of squares + epsilon) of x[0..k), the factor of an RMS norm.
inline f32 rmsFactor(const f32 *x, i64 k, f32 epsilon) {
  Lanes16 sum = Lanes16::splat(0);
  for (i64 i = 0; i < k; i += 16)
    LATHE_UNROLL
  for (u32 h = 0; h < halves; ++h) {
    i64 at = i + h * width;
    Floats v = loadFirst(x + (at < k ? at : k), at < k ? k - at : 0);
    sum.part[h] = fma(v, v, sum.part[h]);
  }
  Floats mean = Floats::splat(treeSum(sum) / f32(k) + epsilon);
  return (Floats::splat(1) / sqrt(mean)).v[0];
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_MATH_H

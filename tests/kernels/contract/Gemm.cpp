#include "tests/kernels/contract/Weights.h"

#include <bit>
#include <cmath>
#include <cstdlib>

namespace lathe::contract {

f32 gemmRow(Format format, const u8 *weightRow, u64 k,
            const ActivationBlock *activation) {
  f32 f = 0.0f;
  for (u64 b = 0; b < k / 32; ++b) {
    WeightBlock w = decodeWeights(format, weightRow, b);
    const ActivationBlock &a = activation[b];

    // I and S of numerics.md, whole and per half.
    i32 iHalf[2] = {}, sHalf[2];
    for (int i = 0; i < 32; ++i)
      iHalf[i / 16] += w.w[i] * a.q[i];
    for (int h = 0; h < 2; ++h)
      sHalf[h] = a.laneSum[h][0] + a.laneSum[h][1];
    i32 sum = iHalf[0] + iHalf[1];
    i32 s = sHalf[0] + sHalf[1];
    // Exact, whatever the order: |J| and |M| are below 2^24.
    i32 j = w.sc[0] * iHalf[0] + w.sc[1] * iHalf[1];
    i32 m = w.mn[0] * sHalf[0] + w.mn[1] * sHalf[1];

    switch (format) {
    case Format::Q4_0:
    case Format::Q5_0:
    case Format::Q8_0:
    case Format::IQ4_NL:
      f = std::fma(f32(sum), w.d * a.d, f);
      break;
    case Format::Q4_1:
    case Format::Q5_1:
      f = std::fma(f32(sum), w.d * a.d, f);
      f = std::fma(w.m, f32(s) * a.d, f);
      break;
    case Format::Q4_K:
    case Format::Q5_K:
      f = std::fma(f32(sum), (w.d * f32(w.sc[0])) * a.d, f);
      f = std::fma(-(w.m * f32(w.mn[0])), f32(s) * a.d, f);
      break;
    case Format::IQ4_XS:
      f = std::fma(f32(sum), (w.d * f32(w.sc[0])) * a.d, f);
      break;
    case Format::Q6_K:
    case Format::Q3_K:
      f = std::fma(f32(j), w.d * a.d, f);
      break;
    case Format::Q2_K:
      f = std::fma(f32(j), w.d * a.d, f);
      f = std::fma(-f32(m), w.m * a.d, f);
      break;
    default:
      std::abort();
    }
  }
  return f;
}

f32 gemmRow(Format format, const u8 *weightRow, u64 k, const f32 *activation) {
  f32 f = 0.0f;
  for (u64 i = 0; i < k; ++i)
    f = std::fma(decodeFloat(format, weightRow, i), activation[i], f);
  return f;
}

/// A subnormal counts as 0 of its sign.
static f32 flushed(f32 x) {
  return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
}

/// The bf16 nearest to x, of two the even one.
static f32 nearestBf16(f32 x) {
  if (!std::isfinite(x))
    return x;
  u16 lower = u16(std::bit_cast<u32>(x) >> 16);
  f64 low = bf16ToF32(lower), high = bf16ToF32(u16(lower + 1));
  if (std::isinf(high)) // where the next one would be
    high = std::copysign(0x1p128, low);
  f64 up = std::fabs(high - x), down = std::fabs(x - low);
  return bf16ToF32(up < down || (up == down && lower % 2) ? u16(lower + 1)
                                                          : lower);
}

f32 brainRow(const u8 *weightRow, u64 k, const f32 *activation) {
  f32 f = 0.0f;
  for (u64 i = 0; i < k; i += 2)
    for (u64 j : {i + 1, i}) {
      bool inside = j < k;
      f32 w = inside ? decodeFloat(Format::BF16, weightRow, j) : 0.0f;
      f32 x = inside ? nearestBf16(activation[j]) : 0.0f;
      f = flushed(std::fma(flushed(w), flushed(x), flushed(f)));
    }
  return f;
}

} // namespace lathe::contract

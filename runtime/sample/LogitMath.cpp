#include "runtime/sample/LogitMath.h"
#include "runtime/device/CpuFeatures.h"

#include <algorithm>
#include <limits>

namespace lathe::runtime {
namespace {

constexpr u32 lanes = 16;
constexpr f32 infinity = std::numeric_limits<f32>::infinity();

/// Written without branches so that it is vectorized; an fma is one rounding
/// whether the compiler has an instruction or calls the library for it.
[[gnu::always_inline]] inline f32 expBody(f32 x) {
  constexpr f32 rounder = 0x1.8p23f; // adding it rounds to an even integer
  // Clamped so that every lane's exponent is in range; NaN falls to the low
  // end and is put back at the end.
  f32 c = x > -87.33654f ? x : -87.33654f;
  c = c < 88.37f ? c : 88.37f;
  f32 n = (c * 1.44269504f + rounder) - rounder;
  f32 r = __builtin_fmaf(n, -0.693359375f, c);
  r = __builtin_fmaf(n, 2.12194440e-4f, r);
  f32 p = 1.9875691500e-4f;
  p = __builtin_fmaf(p, r, 1.3981999507e-3f);
  p = __builtin_fmaf(p, r, 8.3334519073e-3f);
  p = __builtin_fmaf(p, r, 4.1665795894e-2f);
  p = __builtin_fmaf(p, r, 1.6666665459e-1f);
  p = __builtin_fmaf(p, r, 5.0000001201e-1f);
  f32 y = __builtin_fmaf(p, r * r, r) + 1;
  f32 scale = __builtin_bit_cast(f32, (i32(n) + 127) << 23);
  f32 result = y * scale;
  result = x < -87.33654f ? 0.0f : result;
  result = x > 88.37f ? infinity : result;
  return x != x ? x : result;
}

[[gnu::always_inline]] inline f64 sumOfExpBody(const f32 *row, u64 count,
                                               f32 maximum) {
  f64 total = 0;
  for (u64 start = 0; start < count; start += softmaxSlice) {
    u64 n = std::min<u64>(softmaxSlice, count - start);
    const f32 *slice = row + start;
    f32 s[lanes] = {};
    u64 i = 0;
    for (; i + lanes <= n; i += lanes)
      for (u32 lane = 0; lane < lanes; ++lane)
        s[lane] += expBody(slice[i + lane] - maximum);
    for (u32 lane = 0; i < n; ++i, ++lane)
      s[lane] += expBody(slice[i] - maximum);
    for (u32 step = lanes / 2; step != 0; step /= 2)
      for (u32 lane = 0; lane < step; ++lane)
        s[lane] += s[lane + step];
    total += f64(s[0]);
  }
  return total;
}

[[gnu::target("avx2,fma")]] f64 sumOfExpAvx2(const f32 *row, u64 count,
                                             f32 maximum) {
  return sumOfExpBody(row, count, maximum);
}

f64 sumOfExpGeneric(const f32 *row, u64 count, f32 maximum) {
  return sumOfExpBody(row, count, maximum);
}

} // namespace

f32 contractExp(f32 x) { return expBody(x); }

f64 sumOfExp(std::span<const f32> row, f32 maximum) {
  static const bool hasAvx2 = CpuFeatures::detect().supportsIsa("avx2");
  return hasAvx2 ? sumOfExpAvx2(row.data(), row.size(), maximum)
                 : sumOfExpGeneric(row.data(), row.size(), maximum);
}

RowMaximum rowMaximum(std::span<const f32> row) {
  f32 best[lanes];
  u32 nans[lanes] = {};
  std::fill(best, best + lanes, -infinity);
  u64 i = 0;
  for (; i + lanes <= row.size(); i += lanes)
    for (u32 lane = 0; lane < lanes; ++lane) {
      f32 x = row[i + lane];
      best[lane] = x > best[lane] ? x : best[lane];
      nans[lane] |= x != x;
    }
  for (u32 lane = 0; i < row.size(); ++i, ++lane) {
    best[lane] = row[i] > best[lane] ? row[i] : best[lane];
    nans[lane] |= row[i] != row[i];
  }
  RowMaximum result{.value = *std::max_element(best, best + lanes)};
  result.isBroken = result.value == infinity ||
                    std::any_of(nans, nans + lanes, [](u32 n) { return n; });
  return result;
}

u32 firstIndexOf(std::span<const f32> row, f32 value) {
  u64 i = 0;
  for (; i + 64 <= row.size(); i += 64) {
    u32 found = 0;
    for (u32 j = 0; j < 64; ++j)
      found |= row[i + j] == value;
    if (found)
      break;
  }
  while (row[i] != value)
    ++i;
  return u32(i);
}

} // namespace lathe::runtime

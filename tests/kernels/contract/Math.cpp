#include "tests/kernels/contract/Contract.h"

#include <bit>
#include <cmath>
#include <limits>

namespace lathe::contract {

bool sameF32(f32 a, f32 b) {
  return std::bit_cast<u32>(a) == std::bit_cast<u32>(b) ||
         (std::isnan(a) && std::isnan(b));
}

u64 firstDifference(const f32 *a, const f32 *b, u64 count) {
  u64 i = 0;
  while (i < count && sameF32(a[i], b[i]))
    ++i;
  return i;
}

f32 expf(f32 x) {
  if (std::isnan(x))
    return x;
  if (x < -87.33654f)
    return 0.0f;
  if (x > 88.37f)
    return std::numeric_limits<f32>::infinity();
  f32 n = std::nearbyint(x * 1.44269504f);
  f32 r = std::fma(n, -0.693359375f, x);
  r = std::fma(n, 2.12194440e-4f, r);
  f32 p = 1.9875691500e-4f;
  p = std::fma(p, r, 1.3981999507e-3f);
  p = std::fma(p, r, 8.3334519073e-3f);
  p = std::fma(p, r, 4.1665795894e-2f);
  p = std::fma(p, r, 1.6666665459e-1f);
  p = std::fma(p, r, 5.0000001201e-1f);
  f32 y = std::fma(p, r * r, r) + 1.0f;
  f32 power = std::bit_cast<f32>(u32(i32(n) + 127) << 23);
  return y * power;
}

f32 tanhf(f32 x) {
  if (std::isnan(x))
    return x;
  f32 t = expf(-2.0f * std::fabs(x));
  return std::copysign((1.0f - t) / (1.0f + t), x);
}

f32 silu(f32 x) { return x / (1.0f + expf(-x)); }

f32 gelu(f32 x) {
  f32 cube = (x * x) * x;
  f32 inner = 0.7978845608f * (x + 0.044715f * cube);
  return (0.5f * x) * (1.0f + tanhf(inner));
}

f32 tree16(const f32 *lanes) {
  f32 s[16];
  for (int i = 0; i < 16; ++i)
    s[i] = lanes[i];
  for (int width : {8, 4, 2, 1})
    for (int i = 0; i < width; ++i)
      s[i] = s[i] + s[i + width];
  return s[0];
}

f32 laneSum(const f32 *values, u64 count) {
  f32 s[16] = {};
  for (u64 i = 0; i < count; ++i)
    s[i % 16] = s[i % 16] + values[i];
  return tree16(s);
}

} // namespace lathe::contract

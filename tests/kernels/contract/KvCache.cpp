#include "tests/kernels/contract/Contract.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace lathe::contract {

f32 f16ToF32(u16 half) {
  f64 sign = half & 0x8000 ? -1.0 : 1.0;
  int exponent = half >> 10 & 31;
  int mantissa = half & 1023;
  if (exponent == 31)
    return mantissa ? std::numeric_limits<f32>::quiet_NaN()
                    : f32(sign * std::numeric_limits<f64>::infinity());
  if (exponent == 0)
    return f32(sign * std::ldexp(mantissa, -24));
  return f32(sign * std::ldexp(1024 + mantissa, exponent - 25));
}

u16 f32ToF16(f32 value) {
  u16 sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value))
    return sign | 0x7e00;
  f64 x = std::fabs(f64(value));
  if (x >= 65520.0) // halfway between the largest value and 2^16
    return sign | 0x7c00;
  // The spacing of binary16 values around x is 2^e, at least 2^-24. A count of
  // 2048 spacings carries into the exponent by itself.
  int e = x < 0x1p-14 ? -24 : std::ilogb(x) - 10;
  int count = int(std::nearbyint(std::ldexp(x, -e)));
  return sign | u16((e + 24) * 1024 + count);
}

f32 bf16ToF32(u16 brain) { return std::bit_cast<f32>(u32(brain) << 16); }

u64 kvElementBytes(KvType type) { return type == KvType::F16 ? 2 : 4; }

void toCache(KvType type, const f32 *values, u64 count, u8 *cache) {
  for (u64 i = 0; i < count; ++i) {
    if (type == KvType::F32) {
      std::memcpy(cache + 4 * i, &values[i], 4);
    } else {
      u16 half = f32ToF16(values[i]);
      std::memcpy(cache + 2 * i, &half, 2);
    }
  }
}

f32 fromCache(KvType type, const u8 *cache, u64 index) {
  if (type == KvType::F32) {
    f32 value;
    std::memcpy(&value, cache + 4 * index, 4);
    return value;
  }
  u16 half;
  std::memcpy(&half, cache + 2 * index, 2);
  return f16ToF32(half);
}

} // namespace lathe::contract

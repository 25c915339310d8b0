#include "tests/kernels/contract/Contract.h"

#include <algorithm>
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

u16 f32ToBf16(f32 value) {
  if (std::isnan(value))
    return 0x7fc0;
  u32 bits = std::bit_cast<u32>(value);
  u32 low = bits & 0xffff;
  u16 high = u16(bits >> 16);
  bool up = low > 0x8000 || (low == 0x8000 && high % 2 == 1);
  return up ? high + 1 : high;
}

u64 kvRowBytes(KvType type, u64 headDim) {
  switch (type) {
  case KvType::F16:
  case KvType::BF16:
    return 2 * headDim;
  case KvType::F32:
    return 4 * headDim;
  case KvType::Int8:
    return 4 + headDim;
  }
  return 0;
}

u64 butterfly(f32 *values, u64 headDim) {
  u64 run = 1;
  while (headDim % (2 * run) == 0)
    run *= 2;
  for (u64 h = 1; h < run; h *= 2)
    for (u64 i = 0; i < headDim; ++i)
      if (i / h % 2 == 0) {
        f32 a = values[i], b = values[i + h];
        values[i] = a + b;
        values[i + h] = a - b;
      }
  return run;
}

/// One scale for all values, by the rule of an activation block.
static void toInt8(const f32 *values, u64 count, u8 *row) {
  f32 largest = 0;
  bool finite = true;
  for (u64 i = 0; i < count; ++i) {
    finite &= std::isfinite(values[i]);
    largest = std::max(largest, std::fabs(values[i]));
  }
  f32 d = 0, s = 0;
  if (!finite) {
    d = std::numeric_limits<f32>::quiet_NaN();
  } else if (largest >= 0x1p-100f) {
    d = largest / 127.0f;
    s = 127.0f / largest;
  }
  std::memcpy(row, &d, 4);
  for (u64 i = 0; i < count; ++i)
    row[4 + i] = u8(s > 0 ? i8(std::nearbyint(values[i] * s)) : 0);
}

void toCache(KvType type, const f32 *values, u64 headDim, u8 *row) {
  if (type == KvType::Int8)
    return toInt8(values, headDim, row);
  if (type == KvType::F32) {
    std::memcpy(row, values, 4 * headDim);
    return;
  }
  for (u64 i = 0; i < headDim; ++i) {
    u16 bits = type == KvType::F16 ? f32ToF16(values[i]) : f32ToBf16(values[i]);
    std::memcpy(row + 2 * i, &bits, 2);
  }
}

f32 fromCache(KvType type, const u8 *row, u64 index) {
  if (type == KvType::Int8)
    return i8(row[4 + index]);
  if (type == KvType::F32) {
    f32 value;
    std::memcpy(&value, row + 4 * index, 4);
    return value;
  }
  u16 bits;
  std::memcpy(&bits, row + 2 * index, 2);
  return type == KvType::F16 ? f16ToF32(bits) : bf16ToF32(bits);
}

f32 scaleOf(const u8 *row) {
  f32 scale;
  std::memcpy(&scale, row, 4);
  return scale;
}

} // namespace lathe::contract

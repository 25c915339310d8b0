#include "runtime/support/Fp16.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace lathe;
using namespace lathe::runtime;

namespace {

/// The value of a finite binary16 by its definition.
double valueOfF16(u16 half) {
  int exponent = (half >> 10) & 31;
  double mantissa = half & 1023;
  double value = exponent ? std::ldexp(1024 + mantissa, exponent - 25)
                          : std::ldexp(mantissa, -24);
  return half & 0x8000 ? -value : value;
}

u32 bitsOf(f32 value) { return std::bit_cast<u32>(value); }

static_assert(f16ToF32(0x3c00) == 1.0f && f32ToF16(-2.0f) == 0xc000 &&
                  bf16ToF32(0x3f80) == 1.0f && f32ToBf16(1.0f) == 0x3f80,
              "usable in constant expressions");

TEST(Fp16, EveryFiniteF16HasItsDefinedValueAndRoundTrips) {
  for (u32 half = 0; half < 0x10000; ++half) {
    if (f16IsNonFinite(half))
      continue;
    f32 value = f16ToF32(half);
    ASSERT_EQ(double(value), valueOfF16(half)) << half;
    ASSERT_EQ(std::signbit(value), (half & 0x8000) != 0) << half;
    ASSERT_EQ(f32ToF16(value), half);
  }
}

TEST(Fp16, F32BetweenTwoF16RoundsToTheNearestAndTiesToEven) {
  for (u32 half = 0; half < 0x7bff; ++half) {
    // Both values and the middle are exact in f32: 11 bits against 24.
    f32 low = f16ToF32(half), high = f16ToF32(half + 1);
    f32 middle = low + (high - low) / 2;
    u16 even = half & 1 ? half + 1 : half;
    ASSERT_EQ(f32ToF16(middle), even) << half;
    ASSERT_EQ(f32ToF16(-middle), even | 0x8000) << half;
    ASSERT_EQ(f32ToF16(std::nextafter(middle, 0.0f)), half) << half;
    ASSERT_EQ(f32ToF16(std::nextafter(middle, 1e9f)), half + 1) << half;
  }
}

TEST(Fp16, LargeF32BecomeInfinity) {
  EXPECT_EQ(f32ToF16(65519.996f), 0x7bff);
  EXPECT_EQ(f32ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(f32ToF16(-3e38f), 0xfc00);
  EXPECT_EQ(f32ToF16(std::numeric_limits<f32>::infinity()), 0x7c00);
  EXPECT_EQ(f32ToF16(std::numeric_limits<f32>::denorm_min()), 0);
}

TEST(Fp16, NansStayNansAndBecomeQuiet) {
  for (u32 mantissa = 1; mantissa < 1024; ++mantissa) {
    u32 bits = bitsOf(f16ToF32(0x7c00 | mantissa));
    ASSERT_EQ(bits, 0x7fc00000u | (mantissa << 13));
    ASSERT_EQ(f32ToF16(std::bit_cast<f32>(bits)), 0x7e00 | mantissa);
  }
  EXPECT_EQ(bitsOf(f16ToF32(0xfc00)), 0xff800000u);
  EXPECT_EQ(f32ToF16(std::bit_cast<f32>(0xff800001u)), 0xfe00);
  EXPECT_EQ(f32ToBf16(std::bit_cast<f32>(0x7f800001u)), 0x7fc0);
}

TEST(Fp16, Bf16IsTheUpperHalfRoundedToNearestEven) {
  for (u32 brain = 0; brain < 0x10000; ++brain) {
    ASSERT_EQ(bitsOf(bf16ToF32(brain)), brain << 16);
    if (bf16IsNonFinite(brain))
      continue;
    u32 bits = brain << 16;
    auto rounded = [&](u32 low) {
      return f32ToBf16(std::bit_cast<f32>(bits | low));
    };
    ASSERT_EQ(rounded(0), brain);
    ASSERT_EQ(rounded(0x7fff), brain);
    ASSERT_EQ(rounded(0x8000), brain & 1 ? brain + 1 : brain);
    ASSERT_EQ(rounded(0x8001), brain + 1);
  }
}

} // namespace

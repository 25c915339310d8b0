#include "runtime/sample/Noise.h"
#include "runtime/sample/LogitMath.h"

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

using namespace lathe;
using namespace lathe::runtime;

namespace {

using Words = NoiseWords;

// Known answers of the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Noise, PhiloxKnownAnswers) {
  EXPECT_EQ(philox4x32({{0, 0, 0, 0}}, 0, 0),
            (Words{{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}));
  EXPECT_EQ(philox4x32({{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u),
            (Words{{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}));
  EXPECT_EQ(philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
                       0xa4093822, 0x299f31d0),
            (Words{{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}));
}

TEST(Noise, LogIsAccurate) {
  EXPECT_EQ(naturalLog(1.0), 0.0);
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    f64 x = std::exp(std::uniform_real_distribution<f64>(-700, 700)(random));
    EXPECT_NEAR(naturalLog(x), std::log(x), 1e-15 * std::fabs(std::log(x)));
  }
  // Near 1, where -ln(u) of a large word lies.
  for (int i = 0; i < 200000; ++i) {
    f64 u = 1 - std::ldexp(f64(random() % 100000) + 0.5, -32);
    ASSERT_NEAR(naturalLog(u), std::log(u), 1e-15 * std::fabs(std::log(u)));
  }
}

TEST(Noise, GumbelRangeAndMoments) {
  EXPECT_NEAR(gumbel(0), -std::log(33 * std::log(2.0)), 1e-12);
  EXPECT_NEAR(gumbel(~0u), 33 * std::log(2.0), 1e-9);
  f64 sum = 0, squares = 0;
  constexpr u32 n = 400000;
  for (u32 token = 0; token < n; ++token) {
    f64 g = noiseOf(7, 3, token);
    sum += g;
    squares += g * g;
  }
  f64 mean = sum / n, variance = squares / n - mean * mean;
  EXPECT_NEAR(mean, 0.577216, 0.008);    // Euler's constant, 4 sigma
  EXPECT_NEAR(variance, 1.644934, 0.02); // pi^2 / 6
}

TEST(Noise, DependsOnSeedPositionAndToken) {
  f64 base = noiseOf(1, 2, 3);
  EXPECT_EQ(base, noiseOf(1, 2, 3));
  EXPECT_NE(base, noiseOf(2, 2, 3));
  EXPECT_NE(base, noiseOf(u64(1) << 32 | 1, 2, 3));
  EXPECT_NE(base, noiseOf(1, 3, 3));
  EXPECT_NE(base, noiseOf(1, 2, 4));
}

TEST(LogitMath, ExpOfTheContract) {
  const f32 inf = std::numeric_limits<f32>::infinity();
  EXPECT_EQ(contractExp(0), 1.0f);
  EXPECT_EQ(contractExp(-inf), 0.0f);
  EXPECT_EQ(contractExp(-87.34f), 0.0f);
  EXPECT_EQ(contractExp(89), inf);
  EXPECT_TRUE(std::isnan(contractExp(std::nanf(""))));
  for (f32 x = -87.3f; x < 88.3f; x += 0.0137f)
    ASSERT_NEAR(contractExp(x) / std::exp(f64(x)), 1, 2e-7) << x;
}

// The vectorized sum against the definition, one operation at a time.
TEST(LogitMath, SumOfExpFollowsItsDefinition) {
  std::mt19937 random(5);
  for (size_t size : {1u, 15u, 16u, 17u, 4096u, 4097u, 9000u, 50000u}) {
    std::vector<f32> row(size);
    for (f32 &x : row)
      x = std::normal_distribution<f32>(0, 4)(random);
    row[size / 2] = -std::numeric_limits<f32>::infinity();
    f32 maximum = rowMaximum(row).value;
    f64 want = 0;
    for (size_t start = 0; start < size; start += 4096) {
      f32 s[16] = {};
      for (size_t i = start; i < std::min(size, start + 4096); ++i)
        s[(i - start) % 16] += contractExp(row[i] - maximum);
      for (int i = 0; i < 8; ++i)
        s[i] += s[i + 8];
      for (int i = 0; i < 4; ++i)
        s[i] += s[i + 4];
      s[0] += s[2];
      s[1] += s[3];
      want += f64(s[0] + s[1]);
    }
    if (size > 1)
      EXPECT_EQ(sumOfExp(row, maximum), want) << size;
  }
}

TEST(LogitMath, RowMaximumSeesBrokenValuesEverywhere) {
  for (size_t size : {1u, 16u, 33u, 100u})
    for (size_t i = 0; i < size; ++i) {
      std::vector<f32> row(size, -2);
      row[i] = 5;
      EXPECT_EQ(rowMaximum(row).value, 5);
      EXPECT_FALSE(rowMaximum(row).isBroken);
      EXPECT_EQ(firstIndexOf(row, 5), i);
      row[i] = std::nanf("");
      EXPECT_TRUE(rowMaximum(row).isBroken);
      row[i] = std::numeric_limits<f32>::infinity();
      EXPECT_TRUE(rowMaximum(row).isBroken);
      row[i] = -std::numeric_limits<f32>::infinity();
      EXPECT_FALSE(rowMaximum(row).isBroken);
    }
}

} // namespace

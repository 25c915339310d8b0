#include "tests/kernels/Bounds.h"
#include "tests/kernels/contract/Contract.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace lathe;
using namespace lathe::contract;
namespace bounds = lathe::tests::bounds;

namespace {

constexpr f32 infinity = std::numeric_limits<f32>::infinity();
constexpr f32 nan = std::numeric_limits<f32>::quiet_NaN();

/// Every stride-th f32 with magnitude from 2^-27 to `limit`, of one sign. The
/// stride is a prime, so that all low bits occur.
template <typename Check> void sweep(f32 limit, f32 sign, Check check) {
  for (u32 bits = std::bit_cast<u32>(0x1p-27f);
       bits <= std::bit_cast<u32>(limit); bits += 499)
    check(std::copysign(std::bit_cast<f32>(bits), sign));
}

void expectExpClose(f32 x) {
  f64 exact = std::exp(f64(x));
  f64 ulp = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
  f64 error = std::fabs(contract::expf(x) - exact) / ulp;
  ASSERT_LE(error, bounds::expUlp) << "exp(" << x << ")";
}

TEST(Exp, IsWithinItsBoundOverTheWholeRange) {
  sweep(88.37f, 1, expectExpClose);
  sweep(87.33654f, -1, expectExpClose);
}

TEST(Exp, HitsItsWorstKnownArguments) {
  for (f32 x : {-0x1.782f42p+2f, 0x1.aba87cp+4f}) {
    f64 exact = std::exp(f64(x));
    f64 error = std::fabs(contract::expf(x) - exact) /
                std::ldexp(1.0, std::ilogb(exact) - 23);
    EXPECT_GT(error, 1.0);
    EXPECT_LE(error, bounds::expUlp);
  }
}

TEST(Exp, SpecialValuesAreExact) {
  EXPECT_TRUE(sameF32(contract::expf(0.0f), 1.0f));
  EXPECT_TRUE(sameF32(contract::expf(-0.0f), 1.0f));
  EXPECT_TRUE(sameF32(contract::expf(0x1p-149f), 1.0f));
  EXPECT_TRUE(sameF32(contract::expf(-infinity), 0.0f));
  EXPECT_TRUE(sameF32(contract::expf(infinity), infinity));
  EXPECT_TRUE(std::isnan(contract::expf(nan)));
}

TEST(Exp, FlushesAndOverflowsExactlyBeyondItsLimits) {
  f32 low = -87.33654f, high = 88.37f;
  EXPECT_TRUE(sameF32(contract::expf(std::nextafter(low, -infinity)), 0.0f));
  EXPECT_GT(contract::expf(low), 0x1.fffp-127f);
  EXPECT_TRUE(
      sameF32(contract::expf(std::nextafter(high, infinity)), infinity));
  EXPECT_LT(contract::expf(high), infinity);
  EXPECT_GT(contract::expf(high), 2.391e38f);
}

TEST(Tanh, IsWithinItsAbsoluteBound) {
  auto check = [](f32 x) {
    ASSERT_LE(std::fabs(contract::tanhf(x) - std::tanh(f64(x))),
              bounds::tanhAbsolute)
        << "tanh(" << x << ")";
  };
  sweep(100.0f, 1, check);
  sweep(100.0f, -1, check);
}

TEST(Tanh, SpecialValuesAreExact) {
  EXPECT_TRUE(sameF32(contract::tanhf(0.0f), 0.0f));
  EXPECT_TRUE(sameF32(contract::tanhf(-0.0f), -0.0f));
  EXPECT_TRUE(sameF32(contract::tanhf(infinity), 1.0f));
  EXPECT_TRUE(sameF32(contract::tanhf(-infinity), -1.0f));
  EXPECT_TRUE(std::isnan(contract::tanhf(nan)));
}

TEST(Activations, AreWithinTheirBounds) {
  auto check = [](f32 x) {
    f64 exactSilu = x / (1 + std::exp(-f64(x)));
    ASSERT_LE(std::fabs(silu(x) - exactSilu),
              bounds::siluRelative * std::fabs(exactSilu))
        << "silu(" << x << ")";
    f64 z = std::sqrt(2 / M_PI) * (f64(x) + 0.044715 * std::pow(f64(x), 3));
    f64 exactGelu = 0.5 * x * (1 + std::tanh(z));
    ASSERT_LE(std::fabs(gelu(x) - exactGelu),
              bounds::geluRelativeToInput * std::fabs(f64(x)))
        << "gelu(" << x << ")";
  };
  sweep(80.0f, 1, check);
  sweep(80.0f, -1, check);
}

TEST(Sums, TreeAddsEightApartFirst) {
  // (1 + 2^24) rounds the 1 away before lane 4 takes 2^24 off again.
  f32 lanes[16] = {};
  lanes[0] = 1.0f;
  lanes[8] = 0x1p24f;
  lanes[4] = -0x1p24f;
  EXPECT_EQ(tree16(lanes), 0.0f);
  // 1 and -2^24 meet first, exactly, where 2^24 comes in lane 1.
  std::swap(lanes[8], lanes[1]);
  EXPECT_EQ(tree16(lanes), 1.0f);
}

TEST(Sums, LanesTakeEverySixteenthValueInOrder) {
  std::vector<f32> values(49, 0.0f);
  values[5] = 1.0f;
  values[21] = 0x1p24f;
  values[37] = -0x1p24f;
  EXPECT_EQ(laneSum(values.data(), values.size()), 0.0f);
  std::swap(values[5], values[48]);
  EXPECT_EQ(laneSum(values.data(), values.size()), 1.0f);
  EXPECT_TRUE(sameF32(laneSum(values.data(), 0), 0.0f));
}

TEST(SameF32, TellsZerosApartAndTakesAnyNan) {
  EXPECT_FALSE(sameF32(0.0f, -0.0f));
  EXPECT_TRUE(sameF32(nan, std::bit_cast<f32>(0xffc00001u)));
  f32 a[3] = {1, nan, 2}, b[3] = {1, -nan, 3};
  EXPECT_EQ(firstDifference(a, b, 3), 2u);
  EXPECT_EQ(firstDifference(a, b, 2), 2u);
}

} // namespace

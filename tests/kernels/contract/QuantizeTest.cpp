#include "tests/kernels/Bounds.h"
#include "tests/kernels/contract/Random.h"

#include <array>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace lathe;
using namespace lathe::contract;
namespace bounds = lathe::tests::bounds;

namespace {

using Values = std::array<f32, 32>;

void expectZeroIntegers(const ActivationBlock &block) {
  for (i8 q : block.q)
    EXPECT_EQ(q, 0);
  for (auto &half : block.laneSum)
    for (i16 sum : half)
      EXPECT_EQ(sum, 0);
}

TEST(QuantizeBlock, HandMadeBlock) {
  // amax = 127, so d = s = 1; ties go to even.
  Values x = {};
  x[0] = -127.0f;
  x[1] = 0.5f;
  x[2] = 1.5f;
  x[3] = 2.5f;
  x[16] = -2.5f;
  x[19] = 3.49f;
  x[31] = 100.0f;
  ActivationBlock block = quantizeBlock(x.data());
  EXPECT_EQ(block.d, 1.0f);
  EXPECT_EQ(block.q[0], -127);
  EXPECT_EQ(block.q[1], 0);
  EXPECT_EQ(block.q[2], 2);
  EXPECT_EQ(block.q[3], 2);
  EXPECT_EQ(block.q[16], -2);
  EXPECT_EQ(block.q[19], 3);
  EXPECT_EQ(block.q[31], 100);
  EXPECT_EQ(block.laneSum[0][0], -127);
  EXPECT_EQ(block.laneSum[0][1], 4);
  EXPECT_EQ(block.laneSum[1][0], -2);
  EXPECT_EQ(block.laneSum[1][1], 103);
}

TEST(QuantizeBlock, ScaleAndReciprocalAreTwoRoundings) {
  Values x = {};
  x[7] = 0.3f;
  ActivationBlock block = quantizeBlock(x.data());
  EXPECT_TRUE(sameF32(block.d, 0.3f / 127.0f));
  EXPECT_EQ(block.q[7], 127);
}

TEST(QuantizeBlock, NonFiniteGivesNanScaleAndNoIntegers) {
  for (f32 bad : {std::numeric_limits<f32>::infinity(),
                  -std::numeric_limits<f32>::infinity(),
                  std::numeric_limits<f32>::quiet_NaN(),
                  -std::numeric_limits<f32>::quiet_NaN()}) {
    Values x = {};
    x.fill(3.0f);
    x[13] = bad;
    ActivationBlock block = quantizeBlock(x.data());
    EXPECT_EQ(std::bit_cast<u32>(block.d), 0x7fc00000u);
    expectZeroIntegers(block);
  }
}

TEST(QuantizeBlock, TinyGivesZeroAndTheLimitDoesNot) {
  Values x = {};
  x[3] = std::nextafter(0x1p-100f, 0.0f);
  x[4] = -0x1p-149f;
  ActivationBlock block = quantizeBlock(x.data());
  EXPECT_TRUE(sameF32(block.d, 0.0f));
  expectZeroIntegers(block);
  x[3] = -0x1p-100f;
  block = quantizeBlock(x.data());
  EXPECT_TRUE(sameF32(block.d, 0x1p-100f / 127.0f));
  EXPECT_EQ(block.q[3], -127);
}

TEST(QuantizeBlock, LargestFloatStaysInRange) {
  Values x = {};
  x.fill(-std::numeric_limits<f32>::max());
  ActivationBlock block = quantizeBlock(x.data());
  EXPECT_TRUE(std::isfinite(block.d));
  for (i8 q : block.q)
    EXPECT_EQ(q, -127);
  for (auto &half : block.laneSum)
    for (i16 sum : half)
      EXPECT_EQ(sum, -127 * 8);
}

TEST(QuantizeBlock, RandomBlocksAreWithinHalfAStep) {
  tests::RandomInputs random(1);
  for (int round = 0; round < 20000; ++round) {
    Values x;
    f32 scale = std::ldexp(1.0f, int(random.below(180)) - 90);
    for (f32 &value : x)
      value = scale * random.activation();
    ActivationBlock block = quantizeBlock(x.data());
    i32 sums[2][2] = {};
    for (int i = 0; i < 32; ++i) {
      EXPECT_GE(block.q[i], -127);
      EXPECT_LE(std::fabs(f64(x[i]) - f64(block.d) * block.q[i]),
                bounds::quantizedSteps * block.d);
      sums[i / 16][i % 4 / 2] += block.q[i];
    }
    for (int h = 0; h < 2; ++h)
      for (int p = 0; p < 2; ++p)
        EXPECT_EQ(block.laneSum[h][p], sums[h][p]);
  }
}

TEST(QuantizeRow, PadsTheLastBlockWithZeros) {
  tests::RandomInputs random(2);
  std::vector<f32> row = random.activations(70);
  ActivationBlock blocks[3];
  quantizeRow(row.data(), row.size(), blocks);
  row.resize(96, 0.0f);
  for (int b = 0; b < 3; ++b) {
    ActivationBlock expected = quantizeBlock(&row[32 * b]);
    EXPECT_EQ(std::memcmp(&blocks[b], &expected, sizeof(expected)), 0);
  }
  for (int i = 6; i < 32; ++i)
    EXPECT_EQ(blocks[2].q[i], 0);
}

} // namespace

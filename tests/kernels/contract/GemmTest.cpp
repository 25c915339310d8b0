#include "kernels/formats/Format.h"
#include "tests/kernels/Bounds.h"
#include "tests/kernels/contract/Random.h"
#include "tests/kernels/contract/Weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

using namespace lathe;
using namespace lathe::contract;
using kernels::formatTable;
using kernels::FormatTraits;
namespace bounds = lathe::tests::bounds;

namespace {

/// A block whose integers are `q[i] = i % 8` with d = 1: 32 activations.
ActivationBlock ramp(f32 d) {
  ActivationBlock block = {};
  block.d = d;
  for (int i = 0; i < 32; ++i) {
    block.q[i] = i8(i % 8);
    block.laneSum[i / 16][i % 4 / 2] += block.q[i];
  }
  return block;
}

TEST(Weights, RowBytesAgreeWithTheFormatTable) {
  for (const FormatTraits &traits : formatTable)
    EXPECT_EQ(weightRowBytes(traits.format, traits.blockElems * 3),
              traits.blockBytes * 3u)
        << traits.name;
}

TEST(GemmRow, HandMadeQ4_1Block) {
  // d = 2, m = -0.5; low nibbles 3, high nibbles 10.
  std::vector<u8> row = {0x00, 0x40, 0x00, 0xb8};
  row.resize(20, 0xa3);
  ActivationBlock a = ramp(0.25f);
  // Each half of the ramp sums to 56: I = 3·56 + 10·56, S = 112.
  EXPECT_EQ(gemmRow(Format::Q4_1, row.data(), 32, &a),
            728 * 2 * 0.25f - 0.5f * 112 * 0.25f);
}

TEST(GemmRow, HandMadeQ6KBlock) {
  // All codes are 0b100001 - 32 = 1; only sub-blocks 3 and 14 have a scale.
  std::vector<u8> row(210, 0);
  std::memset(&row[0], 0x11, 128);
  std::memset(&row[128], 0xaa, 64);
  row[192 + 3] = 5;
  row[192 + 14] = u8(-7);
  row[209] = 0x3c; // d = 1
  ActivationBlock a[8];
  for (int b = 0; b < 8; ++b)
    a[b] = ramp(f32(b + 1));
  EXPECT_EQ(gemmRow(Format::Q6_K, row.data(), 256, a),
            5 * 56 * 2.0f - 7 * 56 * 8.0f);
}

TEST(GemmRow, HandMadeQ2KBlock) {
  // Codes 0; minimum 3 in sub-block 0, 9 in sub-block 5; dmin = 0.5.
  std::vector<u8> row(84, 0);
  row[0] = 0x30;
  row[5] = 0x90;
  row[81] = 0x3c;
  row[83] = 0x38;
  ActivationBlock a[8];
  for (int b = 0; b < 8; ++b)
    a[b] = ramp(1.0f);
  EXPECT_EQ(gemmRow(Format::Q2_K, row.data(), 256, a), -0.5f * 56 * (3 + 9));
}

TEST(GemmRow, BlocksAreOneChainInOrder) {
  // Q8_0, one weight of 1 per block; activations 1, 2^24, -2^24.
  std::vector<u8> row(3 * 34, 0);
  ActivationBlock a[3] = {};
  f32 scales[3] = {1.0f, 0x1p24f, -0x1p24f};
  for (int b = 0; b < 3; ++b) {
    row[34 * b + 1] = 0x3c;
    row[34 * b + 2] = 1;
    a[b].d = scales[b];
    a[b].q[0] = 1;
  }
  EXPECT_EQ(gemmRow(Format::Q8_0, row.data(), 96, a), 0.0f);
  std::swap(a[0], a[2]);
  EXPECT_EQ(gemmRow(Format::Q8_0, row.data(), 96, a), 1.0f);
}

TEST(GemmRow, FloatsAreOneChainInOrder) {
  f32 w[3] = {1.0f, 1.0f, 1.0f}, x[3] = {1.0f, 0x1p24f, -0x1p24f};
  const u8 *row = reinterpret_cast<const u8 *>(w);
  EXPECT_EQ(gemmRow(Format::F32, row, 3, x), 0.0f);
  // One rounding: 1 + 2^-12 squared, minus its f32 value, is what was lost.
  f32 v[2] = {-0x1.002p0f, 0x1.001p0f}, y[2] = {1.0f, 0x1.001p0f};
  EXPECT_EQ(gemmRow(Format::F32, reinterpret_cast<const u8 *>(v), 2, y),
            0x1p-24f);
}

TEST(GemmRow, ANanBlockGivesNanAndAZeroBlockNothing) {
  tests::RandomInputs random(3);
  for (const FormatTraits &traits : formatTable) {
    if (kernels::isFloatFormat(traits.format))
      continue;
    SCOPED_TRACE(traits.name);
    std::vector<u8> row = random.weights(traits.format, 1, 512);
    std::vector<f32> x = random.activations(512);
    std::vector<ActivationBlock> a(16);
    quantizeRow(x.data(), x.size(), a.data());
    f32 whole = gemmRow(traits.format, row.data(), 512, a.data());
    EXPECT_TRUE(std::isfinite(whole));
    // The first 256 alone are the 512 with zero blocks behind them.
    f32 first = gemmRow(traits.format, row.data(), 256, a.data());
    std::fill(a.begin() + 8, a.end(), ActivationBlock{});
    EXPECT_TRUE(
        sameF32(gemmRow(traits.format, row.data(), 512, a.data()), first));
    EXPECT_FALSE(sameF32(whole, first));

    a[3] = ActivationBlock{};
    a[3].d = std::numeric_limits<f32>::quiet_NaN();
    EXPECT_TRUE(std::isnan(gemmRow(traits.format, row.data(), 512, a.data())));
  }
}

/// The terms that the fmas of a block add, as magnitudes in double.
f64 blockMagnitude(Format format, const WeightBlock &w,
                   const ActivationBlock &a) {
  f64 half[2] = {}, s[2] = {};
  for (int i = 0; i < 32; ++i) {
    half[i / 16] += w.w[i] * a.q[i];
    s[i / 16] += a.q[i];
  }
  f64 scale = f64(w.d) * a.d, minimum = f64(w.m) * a.d;
  switch (format) {
  case Format::Q4_1:
  case Format::Q5_1:
    return std::fabs((half[0] + half[1]) * scale) +
           std::fabs((s[0] + s[1]) * minimum);
  case Format::Q4_K:
  case Format::Q5_K:
    return std::fabs((half[0] + half[1]) * scale * w.sc[0]) +
           std::fabs((s[0] + s[1]) * minimum * w.mn[0]);
  case Format::IQ4_XS:
    return std::fabs((half[0] + half[1]) * scale * w.sc[0]);
  case Format::Q6_K:
  case Format::Q3_K:
  case Format::Q2_K:
    return std::fabs((half[0] * w.sc[0] + half[1] * w.sc[1]) * scale) +
           std::fabs((s[0] * w.mn[0] + s[1] * w.mn[1]) * minimum);
  default:
    return std::fabs((half[0] + half[1]) * scale);
  }
}

TEST(GemmRow, QuantizedFormatsAreWithinTheirBoundOfDouble) {
  tests::RandomInputs random(4);
  for (const FormatTraits &traits : formatTable) {
    if (kernels::isFloatFormat(traits.format))
      continue;
    SCOPED_TRACE(traits.name);
    for (u64 k : {256u, 512u, 1536u, 4096u}) {
      for (int round = 0; round < 20; ++round) {
        std::vector<u8> row = random.weights(traits.format, 1, k);
        std::vector<f32> x = random.activations(k);
        std::vector<ActivationBlock> a(k / 32);
        quantizeRow(x.data(), k, a.data());

        std::vector<f32> w(k);
        dequantizeRow(traits.format, row.data(), k, w.data());
        f64 exact = 0, magnitudes = 0, rounded = 0;
        for (u64 i = 0; i < k; ++i) {
          const ActivationBlock &block = a[i / 32];
          f64 term = f64(w[i]) * (f64(block.d) * block.q[i % 32]);
          exact += term;
          rounded += std::fabs(term);
        }
        for (u64 b = 0; b < k / 32; ++b)
          magnitudes += blockMagnitude(
              traits.format, decodeWeights(traits.format, row.data(), b), a[b]);
        f64 error =
            std::fabs(gemmRow(traits.format, row.data(), k, a.data()) - exact);
        // The reference's weights are f32: one rounding of each term.
        ASSERT_LE(error, bounds::gemm(2 * (k / 32), magnitudes) +
                             bounds::unit * rounded);
        ASSERT_GT(magnitudes, 0);
      }
    }
  }
}

TEST(GemmRow, FloatFormatsAreWithinTheirBoundOfDouble) {
  tests::RandomInputs random(5);
  for (Format format : {Format::F32, Format::F16, Format::BF16})
    for (u64 k : {1u, 31u, 100u, 576u, 4097u}) {
      std::vector<u8> row = random.weights(format, 1, k);
      std::vector<f32> x = random.activations(k), w(k);
      dequantizeRow(format, row.data(), k, w.data());
      f64 exact = 0, magnitudes = 0;
      for (u64 i = 0; i < k; ++i) {
        exact += f64(w[i]) * x[i];
        magnitudes += std::fabs(f64(w[i]) * x[i]);
      }
      EXPECT_LE(std::fabs(gemmRow(format, row.data(), k, x.data()) - exact),
                bounds::gemm(k, magnitudes));
    }
}

TEST(GemmRow, IntegersOfScaledHalvesStayExactInF32) {
  // Q6_K at its extremes: every weight -32, scale -128, activation 127.
  std::vector<u8> row(210, 0);
  std::memset(&row[192], 0x80, 16);
  row[209] = 0x3c;
  ActivationBlock a[8] = {};
  for (ActivationBlock &block : a) {
    block.d = 1.0f;
    std::memset(block.q, 127, 32);
    for (auto &half : block.laneSum)
      for (i16 &sum : half)
        sum = 127 * 8;
  }
  i32 j = 2 * -128 * (16 * -32 * 127);
  ASSERT_LT(j, 1 << 24);
  f32 f = 0;
  for (int b = 0; b < 8; ++b)
    f = std::fma(f32(j), 1.0f, f);
  EXPECT_EQ(gemmRow(Format::Q6_K, row.data(), 256, a), f);
}

} // namespace

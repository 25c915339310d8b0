#include "tests/kernels/Bounds.h"
#include "tests/kernels/contract/Random.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace lathe;
using namespace lathe::contract;
namespace bounds = lathe::tests::bounds;

namespace {

TEST(RmsScale, IsWithinItsBoundOfDouble) {
  tests::RandomInputs random(6);
  for (u64 k : {1u, 15u, 16u, 17u, 64u, 576u, 4096u, 16384u}) {
    std::vector<f32> row = random.activations(k);
    f64 sum = 0;
    for (f32 x : row)
      sum += f64(x) * x;
    f64 exact = 1 / std::sqrt(sum / f64(k) + f64(1e-5f));
    EXPECT_LE(std::fabs(rmsScale(row.data(), k, 1e-5f) - exact),
              bounds::rmsRelative(k) * exact)
        << k;
  }
}

TEST(RmsScale, EdgeCases) {
  f32 zeros[64] = {};
  EXPECT_TRUE(sameF32(rmsScale(zeros, 64, 1e-6f), 1 / std::sqrt(1e-6f)));
  EXPECT_EQ(rmsScale(zeros, 64, 0.0f), std::numeric_limits<f32>::infinity());
  zeros[5] = 0x1p100f; // its square is infinite
  EXPECT_TRUE(sameF32(rmsScale(zeros, 64, 1e-6f), 0.0f));
  zeros[5] = std::numeric_limits<f32>::quiet_NaN();
  EXPECT_TRUE(std::isnan(rmsScale(zeros, 64, 1e-6f)));
}

TEST(RmsScale, SquaresAreAddedInOneRounding) {
  tests::RandomInputs random(9);
  int separateRoundingsDiffer = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<f32> row = random.activations(1000);
    f32 fused[16] = {}, separate[16] = {};
    for (u64 i = 0; i < row.size(); ++i) {
      fused[i % 16] = std::fma(row[i], row[i], fused[i % 16]);
      separate[i % 16] += row[i] * row[i];
    }
    f32 expected = 1 / std::sqrt(tree16(fused) / 1000.0f + 1e-6f);
    EXPECT_TRUE(sameF32(rmsScale(row.data(), 1000, 1e-6f), expected));
    separateRoundingsDiffer +=
        expected != 1 / std::sqrt(tree16(separate) / 1000.0f + 1e-6f);
  }
  EXPECT_GT(separateRoundingsDiffer, 0);
}

TEST(RopePair, IsWithinItsBoundOfDouble) {
  tests::RandomInputs random(7);
  for (int round = 0; round < 2000; ++round) {
    f32 x0 = random.activation(), x1 = random.activation();
    f64 angle = random.uniform(-10, 10);
    f32 c = f32(std::cos(angle)), s = f32(std::sin(angle));
    f32 y0 = x0, y1 = x1;
    ropePair(y0, y1, c, s);
    f64 bound = bounds::ropeRelative * (std::fabs(x0) + std::fabs(x1));
    EXPECT_LE(std::fabs(y0 - (f64(x0) * c - f64(x1) * s)), bound);
    EXPECT_LE(std::fabs(y1 - (f64(x1) * c + f64(x0) * s)), bound);
  }
}

TEST(PrepareHead, PairsByStyleAndPassesTheRestThrough) {
  // A quarter turn: (x0, x1) becomes (-x1, x0).
  f32 table[4] = {0, 1, 0, 1};
  HeadRecipe recipe;
  recipe.headDim = 6;
  recipe.ropePairs = 2;
  recipe.style = RopeStyle::Adjacent;
  f32 head[6] = {1, 2, 3, 4, 5, 6};
  prepareHead(recipe, table, head);
  EXPECT_EQ(std::vector<f32>(head, head + 6),
            (std::vector<f32>{-2, 1, -4, 3, 5, 6}));

  recipe.style = RopeStyle::Halves;
  recipe.scale = 0.5f;
  f32 other[6] = {1, 2, 3, 4, 5, 6};
  prepareHead(recipe, table, other);
  EXPECT_EQ(std::vector<f32>(other, other + 6),
            (std::vector<f32>{-1.5f, -2, 0.5f, 1, 2.5f, 3}));
}

TEST(PrepareHead, NormsBeforeItRotatesAndScalesLast) {
  tests::RandomInputs random(8);
  const u64 dim = 64;
  std::vector<f32> head = random.activations(dim);
  std::vector<f32> norm = random.activations(dim), table(dim);
  for (u64 i = 0; i < dim / 2; ++i) {
    table[2 * i] = f32(std::cos(0.1 * f64(i)));
    table[2 * i + 1] = f32(std::sin(0.1 * f64(i)));
  }
  std::vector<f32> expected = head;
  f32 r = rmsScale(head.data(), dim, 1e-6f);
  for (u64 i = 0; i < dim; ++i)
    expected[i] = (head[i] * r) * norm[i];
  for (u64 i = 0; i < dim / 2; ++i)
    ropePair(expected[i], expected[i + dim / 2], table[2 * i],
             table[2 * i + 1]);
  for (f32 &value : expected)
    value *= 0.3f;

  HeadRecipe recipe{dim, dim / 2, RopeStyle::Halves, norm.data(), 1e-6f, 0.3f};
  prepareHead(recipe, table.data(), head.data());
  EXPECT_EQ(firstDifference(head.data(), expected.data(), dim), dim);
}

TEST(KvCache, F16RoundTripsAndRoundsToTheNearest) {
  for (u32 bits = 0; bits < 0x10000; ++bits) {
    f32 value = f16ToF32(u16(bits));
    if ((bits & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(f16ToF32(f32ToF16(value))));
      continue;
    }
    ASSERT_EQ(f32ToF16(value), bits);
    // Halfway to the next larger magnitude goes to the even one, a little
    // more or less to the nearer.
    if ((bits & 0x7fff) >= 0x7bff)
      continue;
    f32 next = f16ToF32(u16(bits + 1));
    f32 middle = f32((f64(value) + next) / 2);
    ASSERT_EQ(f32ToF16(middle), bits + (bits & 1));
    ASSERT_EQ(f32ToF16(std::nextafter(middle, value)), bits);
    ASSERT_EQ(f32ToF16(std::nextafter(middle, next)), bits + 1);
  }
}

TEST(KvCache, F16OverflowsAtHalfway) {
  EXPECT_EQ(f32ToF16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(f32ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(f32ToF16(-65520.0f), 0xfc00);
  EXPECT_EQ(f32ToF16(0x1p-25f), 0);
  EXPECT_EQ(f32ToF16(std::nextafter(0x1p-25f, 1.0f)), 1);
  EXPECT_EQ(f32ToF16(-0x1p-149f), 0x8000);
}

TEST(KvCache, ElementsComeBackInTheirType) {
  f32 values[3] = {0.1f, -2.0f, 1e6f};
  u8 cache[12];
  toCache(KvType::F32, values, 3, cache);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(sameF32(fromCache(KvType::F32, cache, i), values[i]));
  toCache(KvType::F16, values, 3, cache);
  EXPECT_EQ(fromCache(KvType::F16, cache, 0), 0x1.998p-4f);
  EXPECT_EQ(fromCache(KvType::F16, cache, 1), -2.0f);
  EXPECT_EQ(fromCache(KvType::F16, cache, 2),
            std::numeric_limits<f32>::infinity());
}

TEST(KvCache, Bf16RoundsToTheNearestEven) {
  EXPECT_EQ(f32ToBf16(0x1.01p0f), 0x3f80); // halfway: to the even one
  EXPECT_EQ(f32ToBf16(0x1.03p0f), 0x3f82);
  EXPECT_EQ(f32ToBf16(std::nextafter(0x1.01p0f, 2.0f)), 0x3f81);
  EXPECT_EQ(f32ToBf16(-0x1.8p1f), 0xc040);
  EXPECT_EQ(f32ToBf16(std::numeric_limits<f32>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16ToF32(f32ToBf16(-std::nanf("1")))));
  for (u32 bits = 0; bits < 0x10000; ++bits)
    if (f32 value = bf16ToF32(u16(bits)); !std::isnan(value))
      ASSERT_EQ(f32ToBf16(value), bits);
  f32 values[2] = {0.1f, 3.0f};
  u8 row[4];
  toCache(KvType::BF16, values, 2, row);
  EXPECT_EQ(fromCache(KvType::BF16, row, 0), 0x1.9ap-4f);
  EXPECT_EQ(fromCache(KvType::BF16, row, 1), 3.0f);
}

TEST(KvCache, ButterflyIsItsOwnInverseButForItsSize) {
  f32 two[2] = {3, 5};
  EXPECT_EQ(butterfly(two, 2), 2u);
  EXPECT_EQ(two[0], 8);
  EXPECT_EQ(two[1], -2);
  // 12 is three runs of 4.
  f32 values[12], turned[12];
  for (int i = 0; i < 12; ++i)
    turned[i] = values[i] = f32(i * i - 3);
  EXPECT_EQ(butterfly(turned, 12), 4u);
  EXPECT_EQ(turned[4], values[4] + values[5] + values[6] + values[7]);
  EXPECT_EQ(turned[7], values[4] - values[5] - values[6] + values[7]);
  butterfly(turned, 12);
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(turned[i], 4 * values[i]);
}

TEST(KvCache, Int8HasOneScalePerRow) {
  f32 values[5] = {1.0f, -127.0f, 63.5f, 64.5f, 0.49f};
  u8 row[9];
  ASSERT_EQ(kvRowBytes(KvType::Int8, 5), 9u);
  toCache(KvType::Int8, values, 5, row);
  EXPECT_EQ(scaleOf(row), 1.0f);
  f32 want[5] = {1, -127, 64, 64, 0};
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(fromCache(KvType::Int8, row, i), want[i]) << i;

  // Nothing finite comes of a row that is not.
  for (f32 bad : {std::nanf(""), std::numeric_limits<f32>::infinity()}) {
    values[2] = bad;
    toCache(KvType::Int8, values, 5, row);
    EXPECT_TRUE(std::isnan(scaleOf(row)));
    EXPECT_EQ(fromCache(KvType::Int8, row, 1), 0);
  }
  f32 tiny[2] = {0x1p-101f, -0x1.fp-101f}, small[1] = {0x1p-100f};
  toCache(KvType::Int8, tiny, 2, row);
  EXPECT_EQ(scaleOf(row), 0.0f);
  EXPECT_EQ(fromCache(KvType::Int8, row, 1), 0);
  toCache(KvType::Int8, small, 1, row);
  EXPECT_EQ(fromCache(KvType::Int8, row, 0), 127);
}

} // namespace

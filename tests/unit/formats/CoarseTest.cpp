#include "kernels/formats/Coarse.h"

#include "kernels/formats/Dequantize.h"
#include "tests/unit/formats/SplitMix64.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace lathe::kernels;
using lathe::tests::SplitMix64;

namespace {

constexpr uint64_t k = 96;

/// A row of random codes with scales of 2^-4.
std::vector<uint8_t> randomRow(SplitMix64 &random) {
  std::vector<uint8_t> row = random.bytes(k / 32 * 34);
  for (size_t at = 0; at < row.size(); at += 34) {
    row[at] = 0;
    row[at + 1] = 0x2c;
  }
  return row;
}

std::vector<float> values(Format format, const std::vector<uint8_t> &row) {
  std::vector<float> out(k);
  dequantizeRow(format, row.data(), out.data(), k);
  return out;
}

TEST(Coarse, ErrorIsTheLengthOfTheDifferenceAndRoundings) {
  SplitMix64 random(1);
  for (int i = 0; i < 200; ++i) {
    auto row = randomRow(random);
    std::vector<uint8_t> coarse(k / 32 * 22);
    coarsenRow(row.data(), k, coarse.data());
    auto fine = values(Format::Q8_0, row);
    auto rounded = values(Format::Q5_0, coarse);
    double difference = 0, length = 0;
    for (uint64_t j = 0; j < k; ++j) {
      difference += std::pow(double(fine[j]) - double(rounded[j]), 2);
      length += std::pow(double(fine[j]), 2);
      // Half a step of 8 units; the end that has no code has a whole one.
      ASSERT_LE(std::fabs(fine[j] - rounded[j]), 7 * 0x1p-4);
    }
    difference = std::sqrt(difference);
    length = std::sqrt(length);
    float error = coarseError(row.data(), k);
    EXPECT_GT(error, difference + 5 * 0x1p-23 * length);
    EXPECT_LT(error, difference * 1.00001 + 5 * 0x1p-21 * length);
  }
}

TEST(Coarse, TakesTheSignThatReachesTheExtreme) {
  for (int8_t extreme : {127, -128}) {
    std::vector<uint8_t> row(k / 32 * 34);
    for (size_t at = 0; at < row.size(); at += 34) {
      row[at + 1] = 0x2c;
      row[at + 2] = static_cast<uint8_t>(extreme);
    }
    std::vector<uint8_t> coarse(k / 32 * 22);
    coarsenRow(row.data(), k, coarse.data());
    auto rounded = values(Format::Q5_0, coarse);
    EXPECT_EQ(rounded[0], (extreme > 0 ? 128 : -128) * 0x1p-4f);
    EXPECT_EQ(rounded[1], 0);
  }
}

TEST(Coarse, ScalesThatAreNoNumbersStaySo) {
  SplitMix64 random(2);
  for (uint16_t scale : {0x7e00, 0x7c00, 0xfc00, 0x7bff}) {
    auto row = randomRow(random);
    row[34] = static_cast<uint8_t>(scale);
    row[35] = static_cast<uint8_t>(scale >> 8);
    std::vector<uint8_t> coarse(k / 32 * 22);
    coarsenRow(row.data(), k, coarse.data());
    auto rounded = values(Format::Q5_0, coarse);
    EXPECT_FALSE(std::isfinite(rounded[32] + rounded[33] + rounded[34]));
    EXPECT_EQ(std::isfinite(coarseError(row.data(), k)), scale == 0x7bff);
  }
}

TEST(Coarse, ZeroIsExact) {
  std::vector<uint8_t> row(k / 32 * 34);
  EXPECT_EQ(coarseError(row.data(), k), 0);
}

} // namespace

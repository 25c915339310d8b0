#include "kernels/formats/Layout.h"

#include "kernels/formats/Dequantize.h"
#include "tests/unit/formats/SplitMix64.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace lathe::kernels;
using lathe::tests::SplitMix64;

namespace {

class LayoutTest : public testing::TestWithParam<FormatTraits> {
protected:
  const FormatTraits &traits = GetParam();
  Format format = GetParam().format;
  SplitMix64 random{1000u + GetParam().ggmlType};

  /// Widths in elements: one block, several, odd for the float formats.
  std::vector<uint64_t> widths() const {
    uint64_t block = traits.blockElems;
    return {block, 2 * block, 5 * block};
  }
};

TEST_P(LayoutTest, UnpackOfPackIsTheIdentityOnRandomBits) {
  for (uint64_t rows : {1, 15, 16, 17, 33, 48})
    for (uint64_t k : widths()) {
      size_t bytes = *rowBytes(format, k) * rows;
      std::vector<uint8_t> src = random.bytes(bytes);
      // Guard bytes on both sides, and an odd address.
      size_t packedSize = *packedBytes(format, rows, k);
      std::vector<uint8_t> packed(packedSize + 2, 0xcd);
      packRows(format, src.data(), rows, k, packed.data() + 1);
      ASSERT_EQ(packed.front(), 0xcd);
      ASSERT_EQ(packed.back(), 0xcd);
      std::vector<uint8_t> back(bytes + 2, 0xcd);
      unpackRows(format, packed.data() + 1, rows, k, back.data() + 1);
      ASSERT_EQ(back.front(), 0xcd);
      ASSERT_EQ(back.back(), 0xcd);
      ASSERT_TRUE(std::equal(src.begin(), src.end(), back.begin() + 1))
          << rows << " x " << k;
    }
}

TEST_P(LayoutTest, PackOfUnpackIsTheIdentityOnRandomBits) {
  uint64_t k = 2 * traits.blockElems, rows = 32;
  std::vector<uint8_t> packed = random.bytes(*packedBytes(format, rows, k));
  ASSERT_EQ(packed.size(), *rowBytes(format, k) * rows);
  std::vector<uint8_t> src(packed.size()), again(packed.size());
  unpackRows(format, packed.data(), rows, k, src.data());
  packRows(format, src.data(), rows, k, again.data());
  EXPECT_EQ(packed, again);
}

TEST_P(LayoutTest, GatherRowEqualsDequantizedSourceRow) {
  for (uint64_t rows : {1, 16, 37})
    for (uint64_t k : widths()) {
      size_t stride = *rowBytes(format, k);
      std::vector<uint8_t> src = random.bytes(stride * rows);
      std::vector<uint8_t> packed(*packedBytes(format, rows, k));
      packRows(format, src.data(), rows, k, packed.data());
      for (uint64_t row = 0; row < rows; ++row) {
        std::vector<float> want(k), got(k);
        dequantizeRow(format, &src[row * stride], want.data(),
                      static_cast<int64_t>(k));
        gatherRow(format, packed.data(), rows, k, row, got.data());
        ASSERT_EQ(std::memcmp(want.data(), got.data(), k * sizeof(float)), 0)
            << rows << " x " << k << " row " << row;
      }
    }
}

TEST_P(LayoutTest, MissingRowsAreZeroBytesAndGroupsTakeRowsFromAnywhere) {
  uint64_t k = 3 * traits.blockElems;
  size_t stride = *rowBytes(format, k);
  std::vector<uint8_t> src = random.bytes(stride * r16Rows);
  std::array<const uint8_t *, r16Rows> rows = {};
  std::vector<uint8_t> shuffled(src.size());
  for (uint32_t i = 0; i < r16Rows; ++i) {
    if (i % 3 == 1)
      continue;
    rows[i] = &src[stride * (i * 5 % r16Rows)];
    std::copy_n(rows[i], stride, &shuffled[stride * i]);
  }
  std::vector<uint8_t> want(*packedGroupBytes(format, k)), got(want.size(), 7);
  packRows(format, shuffled.data(), r16Rows, k, want.data());
  packGroup(format, rows, k, got.data());
  EXPECT_EQ(want, got);

  std::vector<uint8_t> back(src.size(), 0xee);
  std::array<uint8_t *, r16Rows> out = {};
  out[5] = &back[5 * stride];
  unpackGroup(format, got.data(), k, out);
  EXPECT_TRUE(std::equal(rows[5], rows[5] + stride, &back[5 * stride]));
  EXPECT_EQ(std::count(back.begin(), back.begin() + 5 * stride, 0xee),
            static_cast<ptrdiff_t>(5 * stride));
}

INSTANTIATE_TEST_SUITE_P(Formats, LayoutTest, testing::ValuesIn(formatTable),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

TEST(LayoutSizes, AreCheckedForBlocksAndOverflow) {
  EXPECT_EQ(packedBytes(Format::Q4_1, 576, 576), 576u * 360);
  EXPECT_EQ(packedBytes(Format::Q4_1, 17, 32), 32u * 20);
  EXPECT_EQ(packedBytes(Format::Q4_1, 0, 32), 0u);
  EXPECT_EQ(packedBytes(Format::BF16, 16, 3), 16u * 8);
  EXPECT_FALSE(packedBytes(Format::Q6_K, 16, 64));
  EXPECT_FALSE(packedBytes(Format::F32, 16, uint64_t(1) << 58));
  EXPECT_FALSE(packedBytes(Format::F32, uint64_t(1) << 62, 1));
  EXPECT_FALSE(packedBytes(Format::BF16, 1, UINT64_MAX));
}

} // namespace

#include "kernels/formats/Format.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace lathe::kernels;

namespace {

TEST(Format, TableIsInEnumerationOrderAndNamesAreInverse) {
  for (size_t i = 0; i < formatTable.size(); ++i) {
    const FormatTraits &traits = formatTable[i];
    ASSERT_EQ(static_cast<size_t>(traits.format), i) << traits.name;
    EXPECT_EQ(&traitsOf(traits.format), &traits);
    EXPECT_EQ(formatFromName(traits.name), traits.format);
    EXPECT_EQ(formatFromName(traits.mnemonic), traits.format);
    EXPECT_EQ(formatFromGgml(traits.ggmlType), traits.format);
    EXPECT_LE(traits.blockElems, maxBlockElems);
    if (!isFloatFormat(traits.format))
      EXPECT_LE(traits.blockBytes, maxBlockBytes);
  }
  EXPECT_TRUE(isFormat(14));
  EXPECT_FALSE(isFormat(15));
}

TEST(Format, UnknownNamesAndNumbersAreNone) {
  for (const char *name : {"", "q4", "q4_00", "Q4_K_M", " q4_0", "i8"})
    EXPECT_FALSE(formatFromName(name)) << name;
  for (uint32_t type : {4u, 5u, 9u, 15u, 16u, 24u, 99u, 0xffffffffu})
    EXPECT_FALSE(formatFromGgml(type)) << type;
}

TEST(Format, RowBytesChecksBlocksAndOverflow) {
  EXPECT_EQ(rowBytes(Format::Q4_1, 576), 360u);
  EXPECT_EQ(rowBytes(Format::Q6_K, 512), 420u);
  EXPECT_EQ(rowBytes(Format::F32, 0), 0u);
  EXPECT_FALSE(rowBytes(Format::Q4_K, 4544));
  EXPECT_FALSE(rowBytes(Format::Q8_0, 80));
  EXPECT_FALSE(rowBytes(Format::F32, uint64_t(1) << 62));
  EXPECT_FALSE(rowBytes(Format::Q8_0, uint64_t(31) << 59));
}

} // namespace

// Bit for bit against the gguf Python package: tests/golden/make_dequant.py.
#include "kernels/formats/Format.h"
#include "tests/kernels/contract/Contract.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <set>

using namespace lathe;
using namespace lathe::contract;
using kernels::FormatTraits;

namespace {

std::vector<u8> readGolden() {
  const char *source = std::getenv("LATHE_SOURCE_DIR");
  std::ifstream in(std::string(source ? source : ".") +
                       "/tests/golden/dequant.bin",
                   std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

u32 word(const std::vector<u8> &bytes, u64 at) {
  u32 value = 0;
  if (at + 4 > bytes.size())
    ADD_FAILURE() << "tests/golden/dequant.bin is missing or too short";
  else
    std::memcpy(&value, &bytes[at], 4);
  return value;
}

TEST(Dequantize, EveryFormatEqualsTheGgufPackage) {
  // "LDQ1", formats; per format: type, blocks, stream fields (u32, u64, 32
  // bytes), blocks, values.
  std::vector<u8> golden = readGolden();
  ASSERT_GT(golden.size(), 8u) << "run tests/golden/make_dequant.py";
  ASSERT_EQ(std::memcmp(golden.data(), "LDQ1", 4), 0);
  std::set<Format> seen;
  u64 at = 8;
  for (u32 n = word(golden, 4); n > 0; --n) {
    auto format = kernels::formatFromGgml(word(golden, at));
    ASSERT_TRUE(format);
    const FormatTraits &traits = kernels::traitsOf(*format);
    SCOPED_TRACE(traits.name);
    seen.insert(*format);
    u64 k = u64(word(golden, at + 4)) * traits.blockElems;
    at += 4 + 4 + 4 + 8 + 32;
    u64 rowBytes = weightRowBytes(*format, k);
    ASSERT_LE(at + rowBytes + 4 * k, golden.size());

    std::vector<f32> values(k), expected(k);
    dequantizeRow(*format, &golden[at], k, values.data());
    std::memcpy(expected.data(), &golden[at + rowBytes], 4 * k);
    u64 differs = firstDifference(values.data(), expected.data(), k);
    ASSERT_EQ(differs, k) << values[differs] << " is not " << expected[differs];
    at += rowBytes + 4 * k;
  }
  EXPECT_EQ(at, golden.size());
  EXPECT_EQ(seen.size(), kernels::formatTable.size());
}

TEST(EmbedRow, ReadsTheRowOfTheToken) {
  // Q8_0, 3 rows of 32: row r has scale 1 and all weights r + 1.
  std::vector<u8> matrix(3 * 34);
  for (int r = 0; r < 3; ++r) {
    std::memset(&matrix[34 * r], r + 1, 34);
    matrix[34 * r] = 0x00;
    matrix[34 * r + 1] = 0x3c;
  }
  f32 out[32];
  embedRow(Format::Q8_0, matrix.data(), 32, 2, out);
  for (f32 value : out)
    EXPECT_EQ(value, 3.0f);
}

} // namespace

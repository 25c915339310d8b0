// Bit-for-bit against the gguf Python package: tests/golden/make_dequant.py.
#include "kernels/formats/Dequantize.h"
#include "runtime/support/Sha256.h"
#include "tests/unit/formats/SplitMix64.h"

#include <bit>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <set>

using namespace lathe::kernels;
using lathe::runtime::Sha256;
using lathe::tests::SplitMix64;

namespace {

/// Reads the golden file front to back.
class Golden {
public:
  Golden() {
    const char *source = std::getenv("LATHE_SOURCE_DIR");
    std::ifstream in(std::string(source ? source : ".") +
                         "/tests/golden/dequant.bin",
                     std::ios::binary);
    data.assign(std::istreambuf_iterator<char>(in), {});
  }
  const uint8_t *take(size_t count) {
    if (count > data.size() - at) {
      ADD_FAILURE() << "tests/golden/dequant.bin is missing or too short";
      std::exit(1);
    }
    at += count;
    return data.data() + at - count;
  }
  template <typename T> T take() {
    T value;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  bool atEnd() const { return at == data.size(); }

private:
  std::vector<uint8_t> data;
  size_t at = 0;
};

/// As the maker: clears the lowest exponent bit of infinite and NaN scales.
void makeFinite(const FormatTraits &traits, uint8_t *block) {
  auto clear = [&](int high, uint8_t mask, int low, uint8_t bit) {
    uint8_t lowMask = mask == 0x7f ? 0x80 : mask;
    if ((block[high] & mask) == mask && (block[low] & lowMask) == lowMask)
      block[low] &= static_cast<uint8_t>(~bit);
  };
  if (traits.format == Format::F32)
    return clear(3, 0x7f, 2, 0x80);
  if (traits.format == Format::BF16)
    return clear(1, 0x7f, 0, 0x80);
  if (traits.format == Format::F16)
    return clear(1, 0x7c, 1, 0x04);
  for (int at : {traits.scaleAt, traits.offsetAt})
    if (at >= 0)
      clear(at + 1, 0x7c, at + 1, 0x04);
}

TEST(Dequantize, EveryFormatEqualsTheGgufPackageBitForBit) {
  Golden golden;
  ASSERT_EQ(std::string(reinterpret_cast<const char *>(golden.take(4)), 4),
            "LDQ1");
  std::set<Format> seen;
  uint32_t formats = golden.take<uint32_t>();
  for (uint32_t n = 0; n < formats; ++n) {
    auto format = formatFromGgml(golden.take<uint32_t>());
    ASSERT_TRUE(format);
    seen.insert(*format);
    const FormatTraits &traits = traitsOf(*format);
    SCOPED_TRACE(traits.name);
    uint32_t blocks = golden.take<uint32_t>();
    uint32_t streamBlocks = golden.take<uint32_t>();
    uint64_t seed = golden.take<uint64_t>();
    Sha256::Digest digest = golden.take<Sha256::Digest>();
    const uint8_t *src = golden.take(blocks * traits.blockBytes);
    size_t elems = blocks * traits.blockElems;
    const uint8_t *expected = golden.take(elems * sizeof(float));

    std::vector<float> values(elems);
    dequantizeRow(*format, src, values.data(), static_cast<int64_t>(elems));
    for (size_t i = 0; i < elems; ++i) {
      uint32_t want;
      std::memcpy(&want, expected + 4 * i, 4);
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), want)
          << "element " << i << " is " << values[i] << ", not "
          << std::bit_cast<float>(want);
    }

    std::vector<uint8_t> stream =
        SplitMix64(seed).bytes(streamBlocks * traits.blockBytes);
    for (size_t at = 0; at < stream.size(); at += traits.blockBytes)
      makeFinite(traits, &stream[at]);
    values.resize(streamBlocks * traits.blockElems);
    dequantizeRow(*format, stream.data(), values.data(),
                  static_cast<int64_t>(values.size()));
    EXPECT_EQ(Sha256::toHex(Sha256::digest(
                  {reinterpret_cast<const uint8_t *>(values.data()),
                   values.size() * sizeof(float)})),
              Sha256::toHex(digest));
  }
  EXPECT_TRUE(golden.atEnd());
  EXPECT_EQ(seen.size(), formatTable.size());
}

TEST(Dequantize, AllZeroBlocksGiveZerosWithoutNan) {
  for (const FormatTraits &traits : formatTable) {
    std::vector<uint8_t> block(traits.blockBytes);
    std::vector<float> values(traits.blockElems, 1.0f);
    dequantizeRow(traits.format, block.data(), values.data(),
                  traits.blockElems);
    for (float value : values)
      EXPECT_EQ(value, 0.0f) << traits.name;
  }
}

TEST(Dequantize, SplitAndJoinAreInverseOnRandomBits) {
  SplitMix64 random(7);
  for (const FormatTraits &traits : formatTable) {
    if (isFloatFormat(traits.format))
      continue;
    for (int round = 0; round < 64; ++round) {
      std::vector<uint8_t> block = random.bytes(traits.blockBytes);
      std::vector<uint8_t> back(traits.blockBytes, 0xaa);
      BlockFields fields;
      std::memset(&fields, 0x55, sizeof(fields));
      splitBlock(traits.format, block.data(), fields);
      joinBlock(traits.format, fields, back.data());
      ASSERT_EQ(block, back) << traits.name;
    }
  }
}

} // namespace

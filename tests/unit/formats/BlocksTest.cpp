// The packed structures, read as Blocks.h documents them, give the source's
// values: an oracle for Layout.cpp that shares no code with it.
#include "kernels/formats/Blocks.h"
#include "kernels/formats/Dequantize.h"
#include "kernels/formats/Layout.h"
#include "runtime/support/Fp16.h"
#include "tests/unit/formats/SplitMix64.h"

#include <bit>
#include <functional>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::kernels;
using lathe::runtime::bf16ToF32;
using lathe::runtime::f16ToF32;
using lathe::tests::SplitMix64;

namespace {

// Codes of element k (0..31) of a 32-element sub-block.
int fourBit(const u8 (&plane)[4][16][4], int row, int k) {
  u8 byte = plane[k % 16 / 4][row][k % 4];
  return k < 16 ? byte & 15 : byte >> 4;
}
int oneBit(const u8 (&plane)[16][4], int row, int k) {
  return plane[row][k % 4] >> (k / 4) & 1;
}
int twoBit(const u8 (&plane)[2][16][4], int row, int k) {
  return plane[k / 16][row][k % 4] >> (2 * (k % 16 / 4)) & 3;
}

/// Scale and minimum of 32-sub-block s of Q4_K and Q5_K.
void sixBit(const u8 (&planes)[12][16], int row, int s, int &scale, int &min) {
  auto byte = [&](int i) { return int(planes[i][row]); };
  scale = s < 4 ? byte(s) & 63 : (byte(s + 4) & 15) | (byte(s - 4) >> 2 & 48);
  min = s < 4 ? byte(s + 4) & 63 : byte(s + 4) >> 4 | (byte(s) >> 2 & 48);
}

/// Packs random blocks and compares value(block, row, k) of one block.
template <typename Block>
void check(Format format,
           const std::function<f32(const Block &, int, int)> &value) {
  const FormatTraits &traits = traitsOf(format);
  int elems = format == Format::BF16 ? 2 : int(traits.blockElems);
  SplitMix64 random(77);
  uint64_t k = 3 * uint64_t(elems), stride = *rowBytes(format, k);
  std::vector<u8> src = random.bytes(stride * 16);
  std::vector<u8> packed(*packedBytes(format, 16, k));
  ASSERT_EQ(packed.size(), 3 * sizeof(Block));
  packRows(format, src.data(), 16, k, packed.data());
  for (int row = 0; row < 16; ++row) {
    std::vector<f32> want(k);
    dequantizeRow(format, &src[stride * row], want.data(), int64_t(k));
    for (int b = 0; b < 3; ++b) {
      Block block;
      std::memcpy(&block, &packed[sizeof(Block) * b], sizeof(Block));
      for (int i = 0; i < elems; ++i) {
        f32 got = value(block, row, i), expected = want[elems * b + i];
        if (got != got && expected != expected)
          continue; // random scales may be NaN
        ASSERT_EQ(std::bit_cast<u32>(got), std::bit_cast<u32>(expected))
            << traits.name << " row " << row << " block " << b << " k " << i;
      }
    }
  }
}

TEST(Blocks, Floats) {
  check<F32R16>(Format::F32, [](auto &b, int r, int) { return b.v[r]; });
  check<F16R16>(Format::F16,
                [](auto &b, int r, int) { return f16ToF32(b.v[r]); });
  check<BF16R16>(Format::BF16,
                 [](auto &b, int r, int k) { return bf16ToF32(b.v[r][k]); });
}

TEST(Blocks, LegacyQuants) {
  check<Q4_0R16>(Format::Q4_0, [](auto &b, int r, int k) {
    return f16ToF32(b.d[r]) * f32(fourBit(b.qs, r, k) - 8);
  });
  check<Q4_1R16>(Format::Q4_1, [](auto &b, int r, int k) {
    return f16ToF32(b.d[r]) * f32(fourBit(b.qs, r, k)) + f16ToF32(b.m[r]);
  });
  check<Q5_0R16>(Format::Q5_0, [](auto &b, int r, int k) {
    int code = fourBit(b.qs, r, k) | oneBit(b.qh, r, k) << 4;
    return f16ToF32(b.d[r]) * f32(code - 16);
  });
  check<Q5_1R16>(Format::Q5_1, [](auto &b, int r, int k) {
    int code = fourBit(b.qs, r, k) | oneBit(b.qh, r, k) << 4;
    return f16ToF32(b.d[r]) * f32(code) + f16ToF32(b.m[r]);
  });
  check<Q8_0R16>(Format::Q8_0, [](auto &b, int r, int k) {
    return f16ToF32(b.d[r]) * f32(b.qs[k / 4][r][k % 4]);
  });
}

TEST(Blocks, KQuants) {
  check<Q2_KR16>(Format::Q2_K, [](auto &b, int r, int k) {
    int scale = b.scales[k / 16][r];
    int code = twoBit(b.qs[k / 32], r, k % 32);
    return f16ToF32(b.d[r]) * f32(scale & 15) * f32(code) -
           f16ToF32(b.dmin[r]) * f32(scale >> 4);
  });
  check<Q3_KR16>(Format::Q3_K, [](auto &b, int r, int k) {
    int s = k / 16;
    int low = b.scales[s % 8][r] >> (s / 8 * 4) & 15;
    int high = b.scales[8 + s % 4][r] >> (s / 4 * 2) & 3;
    int code = twoBit(b.subs[k / 32].qs, r, k % 32) |
               oneBit(b.subs[k / 32].hmask, r, k % 32) << 2;
    return f16ToF32(b.d[r]) * f32((low | high << 4) - 32) * f32(code - 4);
  });
  check<Q4_KR16>(Format::Q4_K, [](auto &b, int r, int k) {
    int scale, min;
    sixBit(b.scales, r, k / 32, scale, min);
    return f16ToF32(b.d[r]) * f32(scale) *
               f32(fourBit(b.qs[k / 32], r, k % 32)) -
           f16ToF32(b.dmin[r]) * f32(min);
  });
  check<Q5_KR16>(Format::Q5_K, [](auto &b, int r, int k) {
    int scale, min;
    sixBit(b.scales, r, k / 32, scale, min);
    int code = fourBit(b.subs[k / 32].qs, r, k % 32) |
               oneBit(b.subs[k / 32].qh, r, k % 32) << 4;
    return f16ToF32(b.d[r]) * f32(scale) * f32(code) -
           f16ToF32(b.dmin[r]) * f32(min);
  });
  check<Q6_KR16>(Format::Q6_K, [](auto &b, int r, int k) {
    int code = fourBit(b.subs[k / 32].ql, r, k % 32) |
               twoBit(b.subs[k / 32].qh, r, k % 32) << 4;
    return f16ToF32(b.d[r]) * f32(b.scales[k / 16][r]) * f32(code - 32);
  });
}

TEST(Blocks, NonLinearQuants) {
  check<IQ4_NLR16>(Format::IQ4_NL, [](auto &b, int r, int k) {
    return f16ToF32(b.d[r]) * f32(iq4Values[fourBit(b.qs, r, k)]);
  });
  check<IQ4_XSR16>(Format::IQ4_XS, [](auto &b, int r, int k) {
    int s = k / 32;
    int scale = (b.scalesL[s / 2][r] >> (s % 2 * 4) & 15) |
                (b.scalesH[r] >> (2 * s) & 3) << 4;
    return f16ToF32(b.d[r]) * f32(scale - 32) *
           f32(iq4Values[fourBit(b.qs[s], r, k % 32)]);
  });
}

} // namespace

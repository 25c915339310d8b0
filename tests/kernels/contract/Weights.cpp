#include "tests/kernels/contract/Weights.h"

#include <bit>
#include <cmath>
#include <cstdlib>

// Block layouts are those of ggml: byte offsets of each field inside a block,
// and for element i of sub-block j the byte and the bits that hold it.

namespace lathe::contract {

static u16 read16(const u8 *bytes) { return u16(bytes[0] | bytes[1] << 8); }

static u32 read32(const u8 *bytes) {
  return u32(bytes[0]) | u32(bytes[1]) << 8 | u32(bytes[2]) << 16 |
         u32(bytes[3]) << 24;
}

static f32 readHalf(const u8 *bytes) { return f16ToF32(read16(bytes)); }

/// `width` bits of `value` from bit `shift` on.
static i32 bits(u32 value, int shift, int width) {
  return i32(value >> shift & ((1u << width) - 1));
}

/// A byte in two's complement.
static i32 signedByte(u8 byte) { return byte < 128 ? byte : byte - 256; }

/// The 4-bit code i of 32 in 16 bytes: low nibbles first, then high ones.
static i32 nibble(const u8 *qs, int i) {
  return bits(qs[i % 16], 4 * (i / 16), 4);
}

/// The values of the 4-bit codes of IQ4_NL and IQ4_XS.
static constexpr i32 iq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};

/// Scale and minimum j of 8 in the 12 bytes of Q4_K and Q5_K.
static void scaleAndMin(const u8 *scales, int j, i32 &sc, i32 &mn) {
  if (j < 4) {
    sc = bits(scales[j], 0, 6);
    mn = bits(scales[j + 4], 0, 6);
  } else {
    sc = bits(scales[j + 4], 0, 4) | bits(scales[j - 4], 6, 2) << 4;
    mn = bits(scales[j + 4], 4, 4) | bits(scales[j], 6, 2) << 4;
  }
}

static WeightBlock decodeSmall(Format format, const u8 *weightRow, u64 index) {
  WeightBlock block = {};
  const u8 *b = weightRow + index * weightRowBytes(format, 32);
  block.d = readHalf(b);
  for (int i = 0; i < 32; ++i) {
    i32 &w = block.w[i];
    switch (format) {
    case Format::Q4_0: // d, qs[16]
      w = nibble(b + 2, i) - 8;
      break;
    case Format::Q4_1: // d, m, qs[16]
      w = nibble(b + 4, i);
      break;
    case Format::Q5_0: // d, qh[4], qs[16]
      w = (nibble(b + 6, i) | bits(read32(b + 2), i, 1) << 4) - 16;
      break;
    case Format::Q5_1: // d, m, qh[4], qs[16]
      w = nibble(b + 8, i) | bits(read32(b + 4), i, 1) << 4;
      break;
    case Format::Q8_0: // d, qs[32]
      w = signedByte(b[2 + i]);
      break;
    case Format::IQ4_NL: // d, qs[16]
      w = iq4Values[nibble(b + 2, i)];
      break;
    default:
      std::abort();
    }
  }
  if (format == Format::Q4_1 || format == Format::Q5_1)
    block.m = readHalf(b + 2);
  return block;
}

/// Sub-block j of a super-block of 256.
static WeightBlock decodeSuper(Format format, const u8 *b, int j) {
  WeightBlock block = {};
  switch (format) {
  case Format::Q2_K: // scales[16], qs[64], d, dmin
    block.d = readHalf(b + 80);
    block.m = readHalf(b + 82);
    for (int h = 0; h < 2; ++h) {
      block.sc[h] = bits(b[2 * j + h], 0, 4);
      block.mn[h] = bits(b[2 * j + h], 4, 4);
    }
    for (int i = 0; i < 32; ++i)
      block.w[i] = bits(b[16 + 32 * (j / 4) + i], 2 * (j % 4), 2);
    break;
  case Format::Q3_K: // hmask[32], qs[64], scales[12], d
    block.d = readHalf(b + 108);
    for (int h = 0; h < 2; ++h) {
      int s = 2 * j + h;
      i32 low = bits(b[96 + s % 8], 4 * (s / 8), 4);
      i32 high = bits(b[96 + 8 + s % 4], 2 * (s / 4), 2);
      block.sc[h] = (low | high << 4) - 32;
    }
    for (int i = 0; i < 32; ++i)
      block.w[i] = bits(b[32 + 32 * (j / 4) + i], 2 * (j % 4), 2) -
                   (bits(b[i], j, 1) ? 0 : 4);
    break;
  case Format::Q4_K: // d, dmin, scales[12], qs[128]
    block.d = readHalf(b);
    block.m = readHalf(b + 2);
    scaleAndMin(b + 4, j, block.sc[0], block.mn[0]);
    for (int i = 0; i < 32; ++i)
      block.w[i] = bits(b[16 + 32 * (j / 2) + i], 4 * (j % 2), 4);
    break;
  case Format::Q5_K: // d, dmin, scales[12], qh[32], qs[128]
    block.d = readHalf(b);
    block.m = readHalf(b + 2);
    scaleAndMin(b + 4, j, block.sc[0], block.mn[0]);
    for (int i = 0; i < 32; ++i)
      block.w[i] = bits(b[48 + 32 * (j / 2) + i], 4 * (j % 2), 4) |
                   bits(b[16 + i], j, 1) << 4;
    break;
  case Format::Q6_K: // ql[128], qh[64], scales[16], d
    block.d = readHalf(b + 208);
    for (int h = 0; h < 2; ++h)
      block.sc[h] = signedByte(b[192 + 2 * j + h]);
    for (int i = 0; i < 32; ++i) {
      int half = j / 4, group = j % 4;
      i32 low = bits(b[64 * half + 32 * (group % 2) + i], 4 * (group / 2), 4);
      i32 high = bits(b[128 + 32 * half + i], 2 * group, 2);
      block.w[i] = (low | high << 4) - 32;
    }
    break;
  case Format::IQ4_XS: // d, scales_h[2], scales_l[4], qs[128]
    block.d = readHalf(b);
    block.sc[0] = (bits(b[4 + j / 2], 4 * (j % 2), 4) |
                   bits(read16(b + 2), 2 * j, 2) << 4) -
                  32;
    for (int i = 0; i < 32; ++i)
      block.w[i] = iq4Values[nibble(b + 8 + 16 * j, i)];
    break;
  default:
    std::abort();
  }
  return block;
}

WeightBlock decodeWeights(Format format, const u8 *weightRow, u64 index) {
  switch (format) {
  case Format::Q4_0:
  case Format::Q4_1:
  case Format::Q5_0:
  case Format::Q5_1:
  case Format::Q8_0:
  case Format::IQ4_NL:
    return decodeSmall(format, weightRow, index);
  default:
    return decodeSuper(format,
                       weightRow + index / 8 * weightRowBytes(format, 256),
                       int(index % 8));
  }
}

f32 decodeFloat(Format format, const u8 *weightRow, u64 index) {
  switch (format) {
  case Format::F32:
    return std::bit_cast<f32>(read32(weightRow + 4 * index));
  case Format::F16:
    return readHalf(weightRow + 2 * index);
  case Format::BF16:
    return bf16ToF32(read16(weightRow + 2 * index));
  default:
    std::abort();
  }
}

u64 weightRowBytes(Format format, u64 k) {
  switch (format) {
  case Format::F32:
    return k * 4;
  case Format::F16:
  case Format::BF16:
    return k * 2;
  case Format::Q4_0:
  case Format::IQ4_NL:
    return k / 32 * 18;
  case Format::Q4_1:
    return k / 32 * 20;
  case Format::Q5_0:
    return k / 32 * 22;
  case Format::Q5_1:
    return k / 32 * 24;
  case Format::Q8_0:
    return k / 32 * 34;
  case Format::Q2_K:
    return k / 256 * 84;
  case Format::Q3_K:
    return k / 256 * 110;
  case Format::Q4_K:
    return k / 256 * 144;
  case Format::Q5_K:
    return k / 256 * 176;
  case Format::Q6_K:
    return k / 256 * 210;
  case Format::IQ4_XS:
    return k / 256 * 136;
  }
  std::abort();
}

void dequantizeRow(Format format, const u8 *weightRow, u64 k, f32 *out) {
  if (kernels::isFloatFormat(format)) {
    for (u64 i = 0; i < k; ++i)
      out[i] = decodeFloat(format, weightRow, i);
    return;
  }
  for (u64 b = 0; b < k / 32; ++b) {
    WeightBlock w = decodeWeights(format, weightRow, b);
    for (int i = 0; i < 32; ++i) {
      f32 &y = out[32 * b + i];
      f32 q = f32(w.w[i]);
      int half = i / 16;
      switch (format) {
      case Format::Q4_0:
      case Format::Q5_0:
      case Format::Q8_0:
      case Format::IQ4_NL:
        y = w.d * q;
        break;
      case Format::Q4_1:
      case Format::Q5_1:
        y = w.d * q + w.m;
        break;
      case Format::Q4_K:
      case Format::Q5_K:
        y = (w.d * f32(w.sc[0])) * q - w.m * f32(w.mn[0]);
        break;
      case Format::IQ4_XS:
        y = (w.d * f32(w.sc[0])) * q;
        break;
      case Format::Q3_K:
      case Format::Q6_K:
        y = (w.d * f32(w.sc[half])) * q;
        break;
      case Format::Q2_K:
        y = (w.d * f32(w.sc[half])) * q - w.m * f32(w.mn[half]);
        break;
      default:
        std::abort();
      }
    }
  }
}

void embedRow(Format format, const u8 *matrix, u64 k, u32 token, f32 *out) {
  dequantizeRow(format, matrix + u64(token) * weightRowBytes(format, k), k,
                out);
}

} // namespace lathe::contract

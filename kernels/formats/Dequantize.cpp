// The order of the float operations below is the definition of the values:
// numpy rounds each product and sum to f32 on its own, so nothing here may be
// fused or reassociated (the build sets -ffp-contract=off).

#include "kernels/formats/Dequantize.h"

#include "kernels/formats/Blocks.h"
#include "runtime/support/Fp16.h"

#include <cassert>
#include <cstring>

namespace lathe::kernels {

using runtime::bf16ToF32;
using runtime::f16ToF32;

namespace {

/// d * (code - offset).
void valuesOfSymmetric(const BlockFields &fields, int offset, float *dst) {
  float d = f16ToF32(fields.half[0]);
  for (uint32_t i = 0; i < 32; ++i)
    dst[i] = d * static_cast<float>(fields.codes[i] - offset);
}

/// d * code + m.
void valuesOfAffine(const BlockFields &fields, float *dst) {
  float d = f16ToF32(fields.half[0]), m = f16ToF32(fields.half[1]);
  for (uint32_t i = 0; i < 32; ++i)
    dst[i] = d * static_cast<float>(fields.codes[i]) + m;
}

void valuesOfQ8(const BlockFields &fields, float *dst) {
  float d = f16ToF32(fields.half[0]);
  for (uint32_t i = 0; i < 32; ++i)
    dst[i] = d * static_cast<float>(static_cast<int8_t>(fields.codes[i]));
}

void valuesOfQ2K(const BlockFields &fields, float *dst) {
  float d = f16ToF32(fields.half[0]), dmin = f16ToF32(fields.half[1]);
  for (uint32_t sub = 0; sub < 16; ++sub) {
    float dl = d * static_cast<float>(fields.scales[sub] & 15);
    float ml = dmin * static_cast<float>(fields.scales[sub] >> 4);
    for (uint32_t i = 16 * sub; i < 16 * sub + 16; ++i)
      dst[i] = dl * static_cast<float>(fields.codes[i]) - ml;
  }
}

void valuesOfQ3K(const BlockFields &fields, float *dst) {
  float d = f16ToF32(fields.half[0]);
  const uint8_t *s = fields.scales;
  for (uint32_t sub = 0; sub < 16; ++sub) {
    // 16 six-bit scales: nibbles in bytes 0..7, upper pairs in bytes 8..11.
    int low = sub < 8 ? s[sub] & 15 : s[sub - 8] >> 4;
    int high = (s[8 + sub % 4] >> (2 * (sub / 4))) & 3;
    float dl = d * static_cast<float>((low | high << 4) - 32);
    // Codes 0..7 stand for -4..3: the hmask bit is set where 4 is *not*
    // subtracted.
    for (uint32_t i = 16 * sub; i < 16 * sub + 16; ++i)
      dst[i] = dl * static_cast<float>(fields.codes[i] - 4);
  }
}

/// Q4_K and Q5_K: eight six-bit scales and minima in 12 bytes.
void valuesOfQ45K(const BlockFields &fields, float *dst) {
  float d = f16ToF32(fields.half[0]), dmin = f16ToF32(fields.half[1]);
  const uint8_t *s = fields.scales;
  for (uint32_t sub = 0; sub < 8; ++sub) {
    int scale, minimum;
    if (sub < 4) {
      scale = s[sub] & 63;
      minimum = s[sub + 4] & 63;
    } else {
      scale = (s[sub + 4] & 15) | (s[sub - 4] >> 6) << 4;
      minimum = s[sub + 4] >> 4 | (s[sub] >> 6) << 4;
    }
    float dl = d * static_cast<float>(scale);
    float ml = dmin * static_cast<float>(minimum);
    for (uint32_t i = 32 * sub; i < 32 * sub + 32; ++i)
      dst[i] = dl * static_cast<float>(fields.codes[i]) - ml;
  }
}

void valuesOfQ6K(const BlockFields &fields, float *dst) {
  float d = f16ToF32(fields.half[0]);
  for (uint32_t sub = 0; sub < 16; ++sub) {
    float dl = d * static_cast<float>(static_cast<int8_t>(fields.scales[sub]));
    for (uint32_t i = 16 * sub; i < 16 * sub + 16; ++i)
      dst[i] = dl * static_cast<float>(fields.codes[i] - 32);
  }
}

void valuesOfIq4Nl(const BlockFields &fields, float *dst) {
  float d = f16ToF32(fields.half[0]);
  for (uint32_t i = 0; i < 32; ++i)
    dst[i] = d * static_cast<float>(iq4Values[fields.codes[i]]);
}

void valuesOfIq4Xs(const BlockFields &fields, float *dst) {
  float d = f16ToF32(fields.half[0]);
  for (uint32_t sub = 0; sub < 8; ++sub) {
    int low = (fields.scales[sub / 2] >> (4 * (sub % 2))) & 15;
    int high = (fields.half[1] >> (2 * sub)) & 3;
    float dl = d * static_cast<float>((low | high << 4) - 32);
    for (uint32_t i = 32 * sub; i < 32 * sub + 32; ++i)
      dst[i] = dl * static_cast<float>(iq4Values[fields.codes[i]]);
  }
}

uint16_t loadHalf(const uint8_t *at) {
  return static_cast<uint16_t>(at[0] | at[1] << 8);
}

} // namespace

void dequantizeFields(Format format, const BlockFields &fields, float *dst) {
  switch (format) {
  case Format::F32:
  case Format::F16:
  case Format::BF16:
    assert(false && "float formats have no fields");
    return;
  case Format::Q4_0:
    return valuesOfSymmetric(fields, 8, dst);
  case Format::Q4_1:
  case Format::Q5_1:
    return valuesOfAffine(fields, dst);
  case Format::Q5_0:
    return valuesOfSymmetric(fields, 16, dst);
  case Format::Q8_0:
    return valuesOfQ8(fields, dst);
  case Format::Q2_K:
    return valuesOfQ2K(fields, dst);
  case Format::Q3_K:
    return valuesOfQ3K(fields, dst);
  case Format::Q4_K:
  case Format::Q5_K:
    return valuesOfQ45K(fields, dst);
  case Format::Q6_K:
    return valuesOfQ6K(fields, dst);
  case Format::IQ4_NL:
    return valuesOfIq4Nl(fields, dst);
  case Format::IQ4_XS:
    return valuesOfIq4Xs(fields, dst);
  }
}

void dequantizeRow(Format format, const uint8_t *src, float *dst, int64_t n) {
  const FormatTraits &traits = traitsOf(format);
  assert(n >= 0 && n % traits.blockElems == 0);
  switch (format) {
  case Format::F32:
    std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
    return;
  case Format::F16:
    for (int64_t i = 0; i < n; ++i)
      dst[i] = f16ToF32(loadHalf(src + 2 * i));
    return;
  case Format::BF16:
    for (int64_t i = 0; i < n; ++i)
      dst[i] = bf16ToF32(loadHalf(src + 2 * i));
    return;
  default:
    break;
  }
  BlockFields fields;
  for (int64_t i = 0; i < n; i += traits.blockElems, src += traits.blockBytes) {
    splitBlock(format, src, fields);
    dequantizeFields(format, fields, dst + i);
  }
}

} // namespace lathe::kernels

/// \file
/// One quantized ggml block taken apart into its fields and integer codes, and
/// put together again: the one place that knows ggml's bit orders.
/// Dequantization and the packed layout are both built on it.
#ifndef LATHE_KERNELS_FORMATS_BLOCKCODEC_H
#define LATHE_KERNELS_FORMATS_BLOCKCODEC_H

#include "kernels/formats/Format.h"

namespace lathe::kernels {

/// The fields of one block. Which are used, and how wide the codes are, says
/// FieldTraits; the rest is left as it was.
struct BlockFields {
  /// The block's 16-bit fields as stored: d; then m, dmin, or scales_h.
  uint16_t half[2];
  /// The bytes of `scales` (IQ4_XS: `scales_l`) as stored.
  uint8_t scales[16];
  /// One raw code per element, in element order: the stored bits, before any
  /// offset, table or sign. Of Q3_K, bit 2 is the hmask bit as stored.
  uint8_t codes[maxBlockElems];
};

/// How a format's blocks and codes are made up.
struct FieldTraits {
  /// 16-bit fields: 1 or 2.
  uint8_t halves;
  /// Bytes of `scales`, 0 to 16.
  uint8_t scaleBytes;
  /// Shifts of the parts of a code that are stored apart, each in its own
  /// plane; -1: no such plane. One-bit plane, two-bit plane, four-bit plane,
  /// whole byte.
  int8_t oneBitShift;
  int8_t twoBitShift;
  int8_t fourBitShift;
  int8_t byteShift;
};

/// The field traits of a quantized format (not of F32, F16, BF16).
constexpr FieldTraits fieldTraitsOf(Format format) {
  switch (format) {
  case Format::Q4_0:
  case Format::IQ4_NL:
    return {1, 0, -1, -1, 0, -1};
  case Format::Q4_1:
    return {2, 0, -1, -1, 0, -1};
  case Format::Q5_0:
    return {1, 0, 4, -1, 0, -1};
  case Format::Q5_1:
    return {2, 0, 4, -1, 0, -1};
  case Format::Q8_0:
    return {1, 0, -1, -1, -1, 0};
  case Format::Q2_K:
    return {2, 16, -1, 0, -1, -1};
  case Format::Q3_K:
    return {1, 12, 2, 0, -1, -1};
  case Format::Q4_K:
    return {2, 12, -1, -1, 0, -1};
  case Format::Q5_K:
    return {2, 12, 4, -1, 0, -1};
  case Format::Q6_K:
    return {1, 16, -1, 4, 0, -1};
  case Format::IQ4_XS:
    return {2, 4, -1, -1, 0, -1};
  case Format::F32:
  case Format::F16:
  case Format::BF16:
    break;
  }
  return {0, 0, -1, -1, -1, -1};
}

/// Takes a block of blockBytes bytes apart. Quantized formats only.
void splitBlock(Format format, const uint8_t *block, BlockFields &fields);

/// The inverse: writes blockBytes bytes. Bits of a code above the format's
/// width are ignored.
void joinBlock(Format format, const BlockFields &fields, uint8_t *block);

} // namespace lathe::kernels

#endif // LATHE_KERNELS_FORMATS_BLOCKCODEC_H

/// \file
/// The packed blocks of layout r16 as structures, for generated kernels.
/// Freestanding: includes kernels/abi/Types.h only.
///
/// A block holds 16 rows × blockElems k. The row is the fastest index of every
/// per-row field; k runs in groups of 4, so that 16 rows × 4 k of bytes are 64
/// consecutive bytes (one vector of int8 dot products; two on AVX2). Planes,
/// written per 32 consecutive k of the block (`sub`), byte b in 0..3:
///
///   fourBit [4][16][4]: byte (j, row, b) low nibble  = code bits of k = 4j + b
///                                        high nibble = of k = 16 + 4j + b
///   oneBit  [16][4]:    byte (row, b), bit t         = bit of k = 4t + b
///   twoBit  [2][16][4]: byte (h, row, b), bits 2j..2j+1 = of k = 16h + 4j + b
///   byte    [8][16][4]: byte (j, row, b)             = code of k = 4j + b
///
/// The planes of one sub lie side by side, so that a block is one stream of
/// memory (with whole planes one after the other, a gemm of Q6_K that reads one
/// row took twice as long).
///
/// Codes, scales and 16-bit floats are the bits that ggml stores. A packed
/// 16-row group is its blocks in k order; see Layout.h.
#ifndef LATHE_KERNELS_FORMATS_BLOCKS_H
#define LATHE_KERNELS_FORMATS_BLOCKS_H

#include "kernels/abi/Types.h"

namespace lathe::kernels {

/// The values of IQ4_NL's and IQ4_XS's codes.
inline constexpr i8 iq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};

// The formats' own names, with their underscores.
// NOLINTBEGIN(readability-identifier-naming)

/// One k of 16 rows.
struct F32R16 {
  f32 v[16];
};

/// One k of 16 rows.
struct F16R16 {
  u16 v[16];
};

/// Two k of 16 rows, side by side in each row; an odd k is padded with +0.
struct BF16R16 {
  u16 v[16][2];
};

/// value = d * (code - 8).
struct Q4_0R16 {
  u16 d[16];
  u8 qs[4][16][4]; ///< fourBit
};

/// value = d * code + m.
struct Q4_1R16 {
  u16 d[16];
  u16 m[16];
  u8 qs[4][16][4]; ///< fourBit
};

/// value = d * (code - 16).
struct Q5_0R16 {
  u16 d[16];
  u8 qh[16][4];    ///< oneBit: code bit 4
  u8 qs[4][16][4]; ///< fourBit
};

/// value = d * code + m.
struct Q5_1R16 {
  u16 d[16];
  u16 m[16];
  u8 qh[16][4];    ///< oneBit: code bit 4
  u8 qs[4][16][4]; ///< fourBit
};

/// value = d * code.
struct Q8_0R16 {
  u16 d[16];
  i8 qs[8][16][4]; ///< byte
};

/// value = d * iq4Values[code].
struct IQ4_NLR16 {
  u16 d[16];
  u8 qs[4][16][4]; ///< fourBit
};

/// value = d * (scale & 15) * code - dmin * (scale >> 4), scale of k / 16.
struct Q2_KR16 {
  u16 d[16];
  u16 dmin[16];
  u8 scales[16][16];
  u8 qs[8][2][16][4]; ///< twoBit
};

/// value = d * (scale - 32) * (code - 4), six-bit scale of k / 16.
struct Q3_KR16 {
  u16 d[16];
  u8 scales[12][16];
  struct Sub {
    u8 hmask[16][4]; ///< oneBit: code bit 2
    u8 qs[2][16][4]; ///< twoBit
  } subs[8];
};

/// value = d * scale * code - dmin * min, six-bit scale and min of k / 32.
struct Q4_KR16 {
  u16 d[16];
  u16 dmin[16];
  u8 scales[12][16];
  u8 qs[8][4][16][4]; ///< fourBit
};

/// As Q4_K, five-bit codes.
struct Q5_KR16 {
  u16 d[16];
  u16 dmin[16];
  u8 scales[12][16];
  struct Sub {
    u8 qh[16][4];    ///< oneBit: code bit 4
    u8 qs[4][16][4]; ///< fourBit
  } subs[8];
};

/// value = d * scale * (code - 32), scale of k / 16.
struct Q6_KR16 {
  u16 d[16];
  i8 scales[16][16];
  struct Sub {
    u8 qh[2][16][4]; ///< twoBit: code bits 4..5
    u8 ql[4][16][4]; ///< fourBit
  } subs[8];
};

/// value = d * (scale - 32) * iq4Values[code], six-bit scale of k / 32.
struct IQ4_XSR16 {
  u16 d[16];
  u16 scalesH[16];    ///< bits 2s..2s+1: upper bits of scale s
  u8 scalesL[4][16];  ///< byte s / 2, nibble s % 2: lower bits of scale s
  u8 qs[8][4][16][4]; ///< fourBit
};

// NOLINTEND(readability-identifier-naming)

// 16 × ggml's block bytes each (BF16: of two k): packing is a permutation.
static_assert(sizeof(F32R16) == 16 * 4 && sizeof(F16R16) == 16 * 2 &&
              sizeof(BF16R16) == 16 * 4);
static_assert(sizeof(Q4_0R16) == 16 * 18 && sizeof(Q4_1R16) == 16 * 20 &&
              sizeof(Q5_0R16) == 16 * 22 && sizeof(Q5_1R16) == 16 * 24 &&
              sizeof(Q8_0R16) == 16 * 34 && sizeof(IQ4_NLR16) == 16 * 18);
static_assert(sizeof(Q2_KR16) == 16 * 84 && sizeof(Q3_KR16) == 16 * 110 &&
              sizeof(Q4_KR16) == 16 * 144 && sizeof(Q5_KR16) == 16 * 176 &&
              sizeof(Q6_KR16) == 16 * 210 && sizeof(IQ4_XSR16) == 16 * 136);

} // namespace lathe::kernels

#endif // LATHE_KERNELS_FORMATS_BLOCKS_H

/// \file
/// How each quantized format of layout r16 gives its codes and scales: the
/// unpack functors of the gemm. To add a format: a specialization of Quant.
///
/// `lane` is the first row of the block that a native row covers. `sub` counts
/// 32-blocks of k inside a block. codes() gives, for i in 0..3, the codes of
/// k = 4i .. 4i+3 (low) and of k = 16+4i .. (high) as bytes.
#ifndef LATHE_KERNELS_CPU_GEMM_CODES_H
#define LATHE_KERNELS_CPU_GEMM_CODES_H

#include "kernels/cpu/simd/Simd.h"
#include "kernels/formats/Blocks.h"
#include "kernels/formats/FormatId.h"

namespace lathe::kernels::inline LATHE_ISA {

/// Codes of four-bit planes.
struct BytePair {
  ByteLanes low, high;
};

/// Byte lanes shifted right (left if negative) and masked; no bit that a mask
/// keeps may come from a neighbouring byte.
LATHE_INLINE ByteLanes shiftAndMask(ByteLanes bytes, i32 right, u8 mask) {
  UShortLanes pairs = bitsAs<UShortLanes>(bytes);
  pairs = right >= 0 ? pairs >> u16(right) : pairs << u16(-right);
  return bitsAs<ByteLanes>(pairs) & mask;
}

/// Four bits at `plane` (row `lane` on), k group i and 4 + i.
LATHE_INLINE BytePair fourBits(const u8 (&plane)[4][16][4], u32 i, u32 lane) {
  ByteLanes bytes = load<ByteLanes>(plane[i][lane]);
  return {bytes & u8(15), shiftAndMask(bytes, 4, 15)};
}

/// One bit of the groups i and 4 + i, moved to bit `to`.
LATHE_INLINE BytePair oneBit(const u8 (&plane)[16][4], u32 i, u32 lane,
                             u32 to) {
  ByteLanes bytes = load<ByteLanes>(plane[lane]);
  return {shiftAndMask(bytes, i32(i) - i32(to), u8(1 << to)),
          shiftAndMask(bytes, i32(i) + 4 - i32(to), u8(1 << to))};
}

/// Two bits of the groups i and 4 + i, moved to bits `to` and to + 1.
LATHE_INLINE BytePair twoBits(const u8 (&plane)[2][16][4], u32 i, u32 lane,
                              u32 to) {
  i32 right = i32(2 * i) - i32(to);
  return {shiftAndMask(load<ByteLanes>(plane[0][lane]), right, u8(3 << to)),
          shiftAndMask(load<ByteLanes>(plane[1][lane]), right, u8(3 << to))};
}

LATHE_INLINE BytePair operator|(BytePair a, BytePair b) {
  return {a.low | b.low, a.high | b.high};
}

/// Which minimum a format subtracts.
enum class Minimum { None, Whole, Halves };

/// The properties that most formats share.
template <typename BlockType, u32 subBlocks, u32 largestCode, u32 codeOffset>
struct QuantBase {
  using Block = BlockType;
  /// 32-blocks of k in a block.
  static constexpr u32 subs = subBlocks;
  /// Codes are at most this, and stand for code - offset.
  static constexpr u32 maxCode = largestCode, offset = codeOffset;
  /// An integer scale per 16 k instead of one float scale per 32.
  static constexpr bool inHalves = false;
  static constexpr Minimum minimum = Minimum::None;

  /// The scale of 32 k, or of a block whose halves have integer scales.
  static LATHE_INLINE Floats scale(const Block &b, u32, u32 lane) {
    return loadHalf(b.d + lane);
  }
};

template <Format format> struct Quant;

template <> struct Quant<Format::Q4_0> : QuantBase<Q4_0R16, 1, 15, 8> {
  static LATHE_INLINE BytePair codes(const Block &b, u32, u32 i, u32 lane) {
    return fourBits(b.qs, i, lane);
  }
};

template <> struct Quant<Format::Q4_1> : QuantBase<Q4_1R16, 1, 15, 0> {
  static constexpr Minimum minimum = Minimum::Whole;
  static LATHE_INLINE BytePair codes(const Block &b, u32, u32 i, u32 lane) {
    return fourBits(b.qs, i, lane);
  }
  static LATHE_INLINE Floats addend(const Block &b, u32, u32 lane) {
    return loadHalf(b.m + lane);
  }
};

template <> struct Quant<Format::Q5_0> : QuantBase<Q5_0R16, 1, 31, 16> {
  static LATHE_INLINE BytePair codes(const Block &b, u32, u32 i, u32 lane) {
    return fourBits(b.qs, i, lane) | oneBit(b.qh, i, lane, 4);
  }
};

template <> struct Quant<Format::Q5_1> : QuantBase<Q5_1R16, 1, 31, 0> {
  static constexpr Minimum minimum = Minimum::Whole;
  static LATHE_INLINE BytePair codes(const Block &b, u32, u32 i, u32 lane) {
    return fourBits(b.qs, i, lane) | oneBit(b.qh, i, lane, 4);
  }
  static LATHE_INLINE Floats addend(const Block &b, u32, u32 lane) {
    return loadHalf(b.m + lane);
  }
};

template <> struct Quant<Format::Q8_0> : QuantBase<Q8_0R16, 1, 255, 128> {
  static LATHE_INLINE BytePair codes(const Block &b, u32, u32 i, u32 lane) {
    return {load<ByteLanes>(b.qs[i][lane]) ^ u8(0x80),
            load<ByteLanes>(b.qs[4 + i][lane]) ^ u8(0x80)};
  }
};

/// iq4Values + 128.
inline constexpr u8 iq4Codes[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                    129, 141, 153, 166, 181, 197, 217, 241};

template <> struct Quant<Format::IQ4_NL> : QuantBase<IQ4_NLR16, 1, 255, 128> {
  static LATHE_INLINE BytePair codes(const Block &b, u32, u32 i, u32 lane) {
    BytePair index = fourBits(b.qs, i, lane);
    return {lookup16(index.low, iq4Codes), lookup16(index.high, iq4Codes)};
  }
};

template <> struct Quant<Format::IQ4_XS> : QuantBase<IQ4_XSR16, 8, 255, 128> {
  static LATHE_INLINE BytePair codes(const Block &b, u32 sub, u32 i, u32 lane) {
    BytePair index = fourBits(b.qs[sub], i, lane);
    return {lookup16(index.low, iq4Codes), lookup16(index.high, iq4Codes)};
  }
  static LATHE_INLINE Floats scale(const Block &b, u32 sub, u32 lane) {
    Ints low = widen(load<RowBytes>(b.scalesL[sub / 2] + lane));
    Ints high = widen(load<RowShorts>(b.scalesH + lane));
    IntLanes six = ((low.v >> i32(4 * (sub % 2))) & 15) |
                   ((high.v >> i32(2 * sub)) & 3) << 4;
    return loadHalf(b.d + lane) * toFloats({six - 32});
  }
};

/// Q4_K's and Q5_K's eight six-bit scales and minima in 12 bytes.
LATHE_INLINE Floats sixBitScale(const u8 (&scales)[12][16], u32 sub, u32 lane) {
  RowBytes six = sub < 4
                     ? load<RowBytes>(scales[sub] + lane) & u8(63)
                     : (load<RowBytes>(scales[sub + 4] + lane) & u8(15)) |
                           (load<RowBytes>(scales[sub - 4] + lane) >> 6) << 4;
  return toFloats(widen(six));
}
LATHE_INLINE Floats sixBitMinimum(const u8 (&scales)[12][16], u32 sub,
                                  u32 lane) {
  RowBytes six = sub < 4 ? load<RowBytes>(scales[sub + 4] + lane) & u8(63)
                         : load<RowBytes>(scales[sub + 4] + lane) >> 4 |
                               (load<RowBytes>(scales[sub] + lane) >> 6) << 4;
  return toFloats(widen(six));
}

/// Q4_K and Q5_K without their codes.
template <typename BlockType, u32 largestCode>
struct QuantSixBit : QuantBase<BlockType, 8, largestCode, 0> {
  static constexpr Minimum minimum = Minimum::Whole;
  static LATHE_INLINE Floats scale(const BlockType &b, u32 sub, u32 lane) {
    return loadHalf(b.d + lane) * sixBitScale(b.scales, sub, lane);
  }
  static LATHE_INLINE Floats addend(const BlockType &b, u32 sub, u32 lane) {
    return -(loadHalf(b.dmin + lane) * sixBitMinimum(b.scales, sub, lane));
  }
};

template <> struct Quant<Format::Q4_K> : QuantSixBit<Q4_KR16, 15> {
  static LATHE_INLINE BytePair codes(const Block &b, u32 sub, u32 i, u32 lane) {
    return fourBits(b.qs[sub], i, lane);
  }
};

template <> struct Quant<Format::Q5_K> : QuantSixBit<Q5_KR16, 31> {
  static LATHE_INLINE BytePair codes(const Block &b, u32 sub, u32 i, u32 lane) {
    return fourBits(b.subs[sub].qs, i, lane) |
           oneBit(b.subs[sub].qh, i, lane, 4);
  }
};

template <> struct Quant<Format::Q6_K> : QuantBase<Q6_KR16, 8, 63, 32> {
  static constexpr bool inHalves = true;
  static LATHE_INLINE BytePair codes(const Block &b, u32 sub, u32 i, u32 lane) {
    return fourBits(b.subs[sub].ql, i, lane) |
           twoBits(b.subs[sub].qh, i, lane, 4);
  }
  static LATHE_INLINE Ints halfScale(const Block &b, u32 half, u32 lane) {
    return widen(load<RowSignedBytes>(b.scales[half] + lane));
  }
};

template <> struct Quant<Format::Q3_K> : QuantBase<Q3_KR16, 8, 7, 4> {
  static constexpr bool inHalves = true;
  static LATHE_INLINE BytePair codes(const Block &b, u32 sub, u32 i, u32 lane) {
    return twoBits(b.subs[sub].qs, i, lane, 0) |
           oneBit(b.subs[sub].hmask, i, lane, 2);
  }
  static LATHE_INLINE Ints halfScale(const Block &b, u32 half, u32 lane) {
    RowBytes low = load<RowBytes>(b.scales[half % 8] + lane);
    RowBytes high = load<RowBytes>(b.scales[8 + half % 4] + lane);
    low = half < 8 ? low & u8(15) : low >> 4;
    IntLanes two = (widen(high).v >> i32(2 * (half / 4))) & 3;
    return {(widen(low).v | two << 4) - 32};
  }
};

template <> struct Quant<Format::Q2_K> : QuantBase<Q2_KR16, 8, 3, 0> {
  static constexpr bool inHalves = true;
  static constexpr Minimum minimum = Minimum::Halves;
  static LATHE_INLINE BytePair codes(const Block &b, u32 sub, u32 i, u32 lane) {
    return twoBits(b.qs[sub], i, lane, 0);
  }
  static LATHE_INLINE Ints halfScale(const Block &b, u32 half, u32 lane) {
    return widen(load<RowBytes>(b.scales[half] + lane) & u8(15));
  }
  static LATHE_INLINE Floats halfMinimum(const Block &b, u32 half, u32 lane) {
    return toFloats(widen(load<RowBytes>(b.scales[half] + lane) >> 4));
  }
  static LATHE_INLINE Floats minimumScale(const Block &b, u32 lane) {
    return loadHalf(b.dmin + lane);
  }
};

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_GEMM_CODES_H

/// \file
/// Skeleton `embed`: rows of a packed matrix by the step's token ids
/// (kernel.embed of ir/kernel/KernelOps.td). Operands are the weight, layout
/// r16 [vocab, k], and out f32 [T, k]. The values are dequantizeRow's
/// (kernels/formats/Dequantize.h), operation by operation.
#ifndef LATHE_KERNELS_CPU_EMBED_H
#define LATHE_KERNELS_CPU_EMBED_H

#include "kernels/cpu/Skeleton.h"
#include "kernels/cpu/simd/Simd.h"
#include "kernels/formats/Blocks.h"
#include "kernels/formats/FormatId.h"

namespace lathe::kernels::inline LATHE_ISA {

/// One f16 value.
inline f32 halfValue(u16 half) {
  u16 row[width] = {half};
  return loadHalf(row).v[0];
}

/// Code of k in 0..31 of row `lane`, from the planes of Blocks.h.
inline u32 fourBitAt(const u8 (&plane)[4][16][4], u32 k, u32 lane) {
  return plane[k % 16 / 4][lane][k % 4] >> (k / 16 * 4) & 15;
}
inline u32 oneBitAt(const u8 (&plane)[16][4], u32 k, u32 lane) {
  return plane[lane][k % 4] >> (k / 4) & 1;
}
inline u32 twoBitsAt(const u8 (&plane)[2][16][4], u32 k, u32 lane) {
  return plane[k / 16][lane][k % 4] >> (k % 16 / 4 * 2) & 3;
}

/// get(): the values of 32-block `index` of row `lane` of a 16-row group; of
/// float formats the first `valid`.
template <Format format> struct RowValues;

/// For the formats with one 32-block per block.
template <typename Block, typename Code>
inline void valuesOf(const Block &b, u32 lane, Code code, f32 *to) {
  f32 d = halfValue(b.d[lane]);
  for (u32 k = 0; k < 32; ++k)
    to[k] = d * f32(code(k));
}
template <typename Block, typename Code>
inline void valuesWithMinimum(const Block &b, u32 lane, Code code, f32 *to) {
  f32 d = halfValue(b.d[lane]), m = halfValue(b.m[lane]);
  for (u32 k = 0; k < 32; ++k)
    to[k] = d * f32(code(k)) + m;
}

template <> struct RowValues<Format::F32> {
  static void get(const void *group, i64 index, u32 lane, i64 valid, f32 *to) {
    const F32R16 *b = static_cast<const F32R16 *>(group) + 32 * index;
    for (i64 k = 0; k < valid; ++k)
      to[k] = b[k].v[lane];
  }
};
template <> struct RowValues<Format::F16> {
  static void get(const void *group, i64 index, u32 lane, i64 valid, f32 *to) {
    const F16R16 *b = static_cast<const F16R16 *>(group) + 32 * index;
    for (i64 k = 0; k < valid; ++k)
      to[k] = halfValue(b[k].v[lane]);
  }
};
template <> struct RowValues<Format::BF16> {
  static void get(const void *group, i64 index, u32 lane, i64 valid, f32 *to) {
    const BF16R16 *b = static_cast<const BF16R16 *>(group) + 16 * index;
    for (i64 k = 0; k < valid; ++k)
      to[k] = bitsAs<f32>(u32(b[k / 2].v[lane][k % 2]) << 16);
  }
};
template <> struct RowValues<Format::Q4_0> {
  static void get(const void *group, i64 index, u32 lane, i64, f32 *to) {
    const Q4_0R16 &b = static_cast<const Q4_0R16 *>(group)[index];
    valuesOf(
        b, lane, [&](u32 k) { return i32(fourBitAt(b.qs, k, lane)) - 8; }, to);
  }
};
template <> struct RowValues<Format::Q4_1> {
  static void get(const void *group, i64 index, u32 lane, i64, f32 *to) {
    const Q4_1R16 &b = static_cast<const Q4_1R16 *>(group)[index];
    valuesWithMinimum(
        b, lane, [&](u32 k) { return fourBitAt(b.qs, k, lane); }, to);
  }
};
template <> struct RowValues<Format::Q5_0> {
  static void get(const void *group, i64 index, u32 lane, i64, f32 *to) {
    const Q5_0R16 &b = static_cast<const Q5_0R16 *>(group)[index];
    auto code = [&](u32 k) {
      return i32(fourBitAt(b.qs, k, lane) | oneBitAt(b.qh, k, lane) << 4) - 16;
    };
    valuesOf(b, lane, code, to);
  }
};
template <> struct RowValues<Format::Q5_1> {
  static void get(const void *group, i64 index, u32 lane, i64, f32 *to) {
    const Q5_1R16 &b = static_cast<const Q5_1R16 *>(group)[index];
    auto code = [&](u32 k) {
      return fourBitAt(b.qs, k, lane) | oneBitAt(b.qh, k, lane) << 4;
    };
    valuesWithMinimum(b, lane, code, to);
  }
};
template <> struct RowValues<Format::Q8_0> {
  static void get(const void *group, i64 index, u32 lane, i64, f32 *to) {
    const Q8_0R16 &b = static_cast<const Q8_0R16 *>(group)[index];
    valuesOf(b, lane, [&](u32 k) { return b.qs[k / 4][lane][k % 4]; }, to);
  }
};
template <> struct RowValues<Format::IQ4_NL> {
  static void get(const void *group, i64 index, u32 lane, i64, f32 *to) {
    const IQ4_NLR16 &b = static_cast<const IQ4_NLR16 *>(group)[index];
    valuesOf(
        b, lane, [&](u32 k) { return iq4Values[fourBitAt(b.qs, k, lane)]; },
        to);
  }
};
template <> struct RowValues<Format::IQ4_XS> {
  static void get(const void *group, i64 index, u32 lane, i64, f32 *to) {
    const IQ4_XSR16 &b = static_cast<const IQ4_XSR16 *>(group)[index / 8];
    u32 sub = u32(index % 8);
    u32 six = (b.scalesL[sub / 2][lane] >> (4 * (sub % 2)) & 15) |
              (b.scalesH[lane] >> (2 * sub) & 3) << 4;
    f32 scale = halfValue(b.d[lane]) * f32(i32(six) - 32);
    for (u32 k = 0; k < 32; ++k)
      to[k] = scale * f32(iq4Values[fourBitAt(b.qs[sub], k, lane)]);
  }
};

/// Q4_K and Q5_K: scale * code - minimum, both from six bits.
template <typename Block, typename Code>
inline void valuesOfSixBit(const Block &b, u32 sub, u32 lane, Code code,
                           f32 *to) {
  auto byte = [&](u32 at) { return u32(b.scales[at][lane]); };
  u32 scale = sub < 4 ? byte(sub) & 63
                      : (byte(sub + 4) & 15) | (byte(sub - 4) >> 6) << 4;
  u32 minimum =
      sub < 4 ? byte(sub + 4) & 63 : byte(sub + 4) >> 4 | (byte(sub) >> 6) << 4;
  f32 dl = halfValue(b.d[lane]) * f32(scale);
  f32 ml = halfValue(b.dmin[lane]) * f32(minimum);
  for (u32 k = 0; k < 32; ++k)
    to[k] = dl * f32(code(k)) - ml;
}
template <> struct RowValues<Format::Q4_K> {
  static void get(const void *group, i64 index, u32 lane, i64, f32 *to) {
    const Q4_KR16 &b = static_cast<const Q4_KR16 *>(group)[index / 8];
    u32 sub = u32(index % 8);
    valuesOfSixBit(
        b, sub, lane, [&](u32 k) { return fourBitAt(b.qs[sub], k, lane); }, to);
  }
};
template <> struct RowValues<Format::Q5_K> {
  static void get(const void *group, i64 index, u32 lane, i64, f32 *to) {
    const Q5_KR16 &b = static_cast<const Q5_KR16 *>(group)[index / 8];
    u32 sub = u32(index % 8);
    auto code = [&](u32 k) {
      return fourBitAt(b.subs[sub].qs, k, lane) |
             oneBitAt(b.subs[sub].qh, k, lane) << 4;
    };
    valuesOfSixBit(b, sub, lane, code, to);
  }
};
template <> struct RowValues<Format::Q6_K> {
  static void get(const void *group, i64 index, u32 lane, i64, f32 *to) {
    const Q6_KR16 &b = static_cast<const Q6_KR16 *>(group)[index / 8];
    u32 sub = u32(index % 8);
    f32 d = halfValue(b.d[lane]);
    for (u32 k = 0; k < 32; ++k) {
      u32 code = fourBitAt(b.subs[sub].ql, k, lane) |
                 twoBitsAt(b.subs[sub].qh, k, lane) << 4;
      to[k] = d * f32(b.scales[2 * sub + k / 16][lane]) * f32(i32(code) - 32);
    }
  }
};
template <> struct RowValues<Format::Q3_K> {
  static void get(const void *group, i64 index, u32 lane, i64, f32 *to) {
    const Q3_KR16 &b = static_cast<const Q3_KR16 *>(group)[index / 8];
    u32 sub = u32(index % 8);
    f32 d = halfValue(b.d[lane]);
    for (u32 k = 0; k < 32; ++k) {
      u32 half = 2 * sub + k / 16;
      u32 low =
          half < 8 ? b.scales[half][lane] & 15 : b.scales[half - 8][lane] >> 4;
      u32 high = b.scales[8 + half % 4][lane] >> (2 * (half / 4)) & 3;
      u32 code = twoBitsAt(b.subs[sub].qs, k, lane) |
                 oneBitAt(b.subs[sub].hmask, k, lane) << 2;
      to[k] = d * f32(i32(low | high << 4) - 32) * f32(i32(code) - 4);
    }
  }
};
template <> struct RowValues<Format::Q2_K> {
  static void get(const void *group, i64 index, u32 lane, i64, f32 *to) {
    const Q2_KR16 &b = static_cast<const Q2_KR16 *>(group)[index / 8];
    u32 sub = u32(index % 8);
    f32 d = halfValue(b.d[lane]), dmin = halfValue(b.dmin[lane]);
    for (u32 k = 0; k < 32; ++k) {
      u32 byte = b.scales[2 * sub + k / 16][lane];
      to[k] = d * f32(byte & 15) * f32(twoBitsAt(b.qs[sub], k, lane)) -
              dmin * f32(byte >> 4);
    }
  }
};

/// Bytes of a 16-row group of k elements.
template <Format format> constexpr i64 groupBytes(i64 k) {
  switch (format) {
  case Format::F32:
    return k * i64(sizeof(F32R16));
  case Format::F16:
    return k * i64(sizeof(F16R16));
  case Format::BF16:
    return ceilDivide(k, 2) * i64(sizeof(BF16R16));
  case Format::Q4_0:
    return k / 32 * i64(sizeof(Q4_0R16));
  case Format::Q4_1:
    return k / 32 * i64(sizeof(Q4_1R16));
  case Format::Q5_0:
    return k / 32 * i64(sizeof(Q5_0R16));
  case Format::Q5_1:
    return k / 32 * i64(sizeof(Q5_1R16));
  case Format::Q8_0:
    return k / 32 * i64(sizeof(Q8_0R16));
  case Format::IQ4_NL:
    return k / 32 * i64(sizeof(IQ4_NLR16));
  case Format::Q2_K:
    return k / 256 * i64(sizeof(Q2_KR16));
  case Format::Q3_K:
    return k / 256 * i64(sizeof(Q3_KR16));
  case Format::Q4_K:
    return k / 256 * i64(sizeof(Q4_KR16));
  case Format::Q5_K:
    return k / 256 * i64(sizeof(Q5_KR16));
  case Format::Q6_K:
    return k / 256 * i64(sizeof(Q6_KR16));
  case Format::IQ4_XS:
    return k / 256 * i64(sizeof(IQ4_XSR16));
  }
}

/// The part of thread `thread` of an embedding of `rows` rows: threads split
/// the 32-blocks of all rows.
template <typename K>
void embed(const StepArgs *args, const void *const *operands, u32 rows,
           u32 thread, u32 threads) {
  constexpr i64 k = K::k, blocks = ceilDivide(k, 32);
  const u8 *weight = static_cast<const u8 *>(operands[0]);
  f32 *out = static_cast<f32 *>(const_cast<void *>(operands[1]));
  Range range = splitEvenly(rows * blocks, thread, threads);
  for (i64 at = range.begin; at < range.end; ++at) {
    i64 row = at / blocks, block = at % blocks;
    i64 valid = k - block * 32 < 32 ? k - block * 32 : 32;
    i64 token = args->tokens[row];
    alignas(64) f32 values[32] = {};
    RowValues<K::format>::get(weight + token / 16 * groupBytes<K::format>(k),
                              block, u32(token % 16), valid, values);
    f32 *to = out + row * k + block * 32;
    for (i64 c = 0; c < valid; c += width)
      storeFirst(to + c, K::template map<Floats>(load<Floats>(values + c)),
                 valid - c);
  }
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_EMBED_H

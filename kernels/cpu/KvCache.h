/// \file
/// How keys and values lie in the pages of a KV group on a CPU. A *tile* is the
/// K or the V of one KV head of a layer in a page (KvGroupArgs). K tiles are
/// [d][16 tokens] and V tiles [16 tokens][d] in the cache's dtype; int8 is
/// below.
#ifndef LATHE_KERNELS_CPU_KVCACHE_H
#define LATHE_KERNELS_CPU_KVCACHE_H

#include "kernels/abi/KvTile.h"
#include "kernels/cpu/Butterfly.h"
#include "kernels/cpu/Quantize.h"
#include "kernels/cpu/Skeleton.h"
#include "kernels/cpu/simd/Simd.h"

namespace lathe::kernels::inline LATHE_ISA {

/// Elements of a float cache in memory.
template <KvType type> struct CacheElement;

template <> struct CacheElement<KvType::F16> {
  using Type = u16;
  static LATHE_INLINE Floats get(const u16 *from) { return loadHalf(from); }
  /// `width` values, rounded to nearest even.
  static LATHE_INLINE void put(u16 *to, Floats value) { storeHalf(to, value); }
};

template <> struct CacheElement<KvType::BF16> {
  using Type = u16;
  static LATHE_INLINE Floats get(const u16 *from) {
    return brainToFloats(
        __builtin_convertvector(load<RowShorts>(from), UIntLanes));
  }
  static LATHE_INLINE void put(u16 *to, Floats value) {
    store(to, roundToBrain(value));
  }
};

template <> struct CacheElement<KvType::F32> {
  using Type = f32;
  static LATHE_INLINE Floats get(const f32 *from) { return load<Floats>(from); }
  static LATHE_INLINE void put(f32 *to, Floats value) { store(to, value); }
};

/// Writing of tiles. Threads may write different tokens of one tile at once. A
/// head is f32 [headDim], readable up to the next multiple of 16, where int8
/// wants zeros.
template <KvType type, i64 headDim> struct KvTile {
  using Cache = CacheElement<type>;
  using Type = typename Cache::Type;
  static constexpr i64 padded = ceilDivide(headDim, 16) * 16;

  static LATHE_INLINE void putKey(u8 *tile, i64 token, const f32 *head) {
    alignas(64) Type converted[padded];
    convert(head, converted);
    Type *keys = reinterpret_cast<Type *>(tile);
    for (i64 d = 0; d < headDim; ++d)
      keys[d * i64(pageTokens) + token] = converted[d];
  }

  static LATHE_INLINE void putValue(u8 *tile, i64 token, const f32 *head) {
    alignas(64) Type converted[padded];
    convert(head, converted);
    Type *values = reinterpret_cast<Type *>(tile);
    __builtin_memcpy(values + token * headDim, converted,
                     headDim * sizeof(Type));
  }

private:
  static LATHE_INLINE void convert(const f32 *head, Type *to) {
    for (i64 d = 0; d < padded; d += width)
      Cache::put(to + d, load<Floats>(head + d));
  }
};

/// Int8: keys behind the butterfly, q + 128, so that a tile is what Dot takes
/// as codes, and a scale per token. A K tile is [d / 4][16 tokens][4 d], then
/// the scales; a V tile the scales, then [16 tokens / 4][d][4 tokens], d padded
/// to whole 16: each in the order in which attention reads it.
template <i64 headDim> struct KvTile<KvType::Int8, headDim> {
  static constexpr i64 padded = ceilDivide(headDim, 16) * 16;
  static constexpr i64 scaleBytes = pageTokens * sizeof(f32);

  static const u8 *keyCodes(const u8 *tile) { return tile; }
  static const u8 *valueCodes(const u8 *tile) { return tile + scaleBytes; }
  static const f32 *keyScales(const u8 *tile) {
    return reinterpret_cast<const f32 *>(tile + padded * i64(pageTokens));
  }
  static const f32 *valueScales(const u8 *tile) {
    return reinterpret_cast<const f32 *>(tile);
  }

  static LATHE_INLINE void putKey(u8 *tile, i64 token, const f32 *head) {
    alignas(64) f32 turned[padded];
    __builtin_memcpy(turned, head, sizeof(turned));
    butterfly<headDim>(turned);
    alignas(64) u8 codes[padded];
    const_cast<f32 *>(keyScales(tile))[token] = quantize(turned, codes);
    for (i64 d = 0; d < padded; d += 4)
      __builtin_memcpy(tile + d * i64(pageTokens) + 4 * token, codes + d, 4);
  }

  static LATHE_INLINE void putValue(u8 *tile, i64 token, const f32 *head) {
    alignas(64) u8 codes[padded];
    const_cast<f32 *>(valueScales(tile))[token] = quantize(head, codes);
    u8 *to = tile + scaleBytes + token / 4 * padded * 4 + token % 4;
    for (i64 d = 0; d < padded; ++d)
      to[4 * d] = codes[d];
  }

private:
  /// A head's codes, and its scale.
  static LATHE_INLINE f32 quantize(const f32 *head, u8 *codes) {
    IntLanes largest = {};
    for (i64 d = 0; d < padded; d += width) {
      IntLanes magnitude =
          bitsAs<IntLanes>(load<Floats>(head + d).v) & 0x7fffffff;
      largest = magnitude > largest ? magnitude : largest;
    }
    Scaling scaling = scalingOf(__builtin_reduce_max(largest));
    for (i64 d = 0; d < padded; d += width) {
      Floats x = load<Floats>(head + d) * Floats::splat(scaling.inverse);
      // Garbage where the scale is NaN or 0.
      IntLanes q = scaling.inverse > 0 ? roundToInt(x).v : IntLanes{};
      store(codes + d, __builtin_convertvector(q + 128, RowBytes));
    }
    return scaling.d;
  }
};

/// The page that holds `position` of `sequence`.
LATHE_INLINE u64 pageOf(const KvGroupArgs &group, u32 sequence, i64 position) {
  return group.pages[u64(sequence) * group.pageTableStride +
                     u64(position) / pageTokens];
}

/// The tile of a KV head in page `page` of a group; `part` is where the layer's
/// K or V starts in its pool.
template <typename K>
LATHE_INLINE const u8 *tileInPage(const KvGroupArgs &group, const void *part,
                                  u64 page, i64 head) {
  return static_cast<const u8 *>(part) +
         (u64(head) * group.pageCount + page) *
             kvTileBytes(K::element, K::headDim);
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_KVCACHE_H

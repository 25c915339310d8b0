/// \file
/// How keys and values lie in the pages of a KV group on a CPU: inside a
/// layer's part of a page, K as [kvHead][d][16 tokens] and V as
/// [kvHead][16 tokens][d], in the cache's dtype.
#ifndef LATHE_KERNELS_CPU_KVCACHE_H
#define LATHE_KERNELS_CPU_KVCACHE_H

#include "kernels/cpu/Skeleton.h"
#include "kernels/cpu/simd/Simd.h"

namespace lathe::kernels::inline LATHE_ISA {

/// Elements of a cache dtype in memory.
template <typename Element> struct CacheElement;

template <> struct CacheElement<F16> {
  using Type = u16;
  static LATHE_INLINE Floats get(const u16 *from) { return loadHalf(from); }
  /// `width` values, rounded to nearest even.
  static LATHE_INLINE void put(u16 *to, Floats value) { storeHalf(to, value); }
};

template <> struct CacheElement<F32> {
  using Type = f32;
  static LATHE_INLINE Floats get(const f32 *from) { return load<Floats>(from); }
  static LATHE_INLINE void put(f32 *to, Floats value) { store(to, value); }
};

/// The page that holds `position` of `sequence`.
LATHE_INLINE u64 pageOf(const KvGroupArgs &group, u32 sequence, i64 position) {
  return group.pages[u64(sequence) * group.pageTableStride +
                     u64(position) / pageTokens];
}

/// A head's K or V in page `page` of a group; `part` is where the layer's K or
/// V starts in its pool.
template <typename Element, i64 headDim>
LATHE_INLINE auto *headInPage(const KvGroupArgs &group, const void *part,
                              u64 page, i64 head) {
  using Type = typename CacheElement<Element>::Type;
  return static_cast<const Type *>(part) +
         i64(u64(head) * group.pageCount + page) * headDim * i64(pageTokens);
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_KVCACHE_H

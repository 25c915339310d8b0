/// \file
/// What all skeletons share: lists of types, the split over threads, and the
/// side operands of element regions.
#ifndef LATHE_KERNELS_CPU_SKELETON_H
#define LATHE_KERNELS_CPU_SKELETON_H

#include "kernels/cpu/Tags.h"
#include "kernels/cpu/simd/Vector.h"

namespace lathe::kernels::inline LATHE_ISA {

template <typename T, T... values> struct Sequence {};
/// Sequence<u32, 0, 1, .., count - 1>.
template <u32 count> using Indices = __make_integer_seq<Sequence, u32, count>;

/// The Index-th type of a list.
template <u32 index, typename List> struct TypeAtImpl;
template <u32 index, typename... Types>
struct TypeAtImpl<index, TypeList<Types...>> {
  using Type = __type_pack_element<index, Types...>;
};
template <u32 index, typename List>
using TypeAt = typename TypeAtImpl<index, List>::Type;

/// Calls body.operator()<0>() .. <count - 1>(), in order.
template <typename Body, u32... index>
LATHE_INLINE void forEachImpl(Body body, Sequence<u32, index...>) {
  (body.template operator()<index>(), ...);
}
template <u32 count, typename Body> LATHE_INLINE void forEach(Body body) {
  forEachImpl(body, Indices<count>{});
}

/// The side kinds of a segment or stage; it has no `sides` if sideCount is 0.
template <typename S, u32 index> constexpr Side sideAt() {
  return S::sides[index];
}

/// A half-open range.
struct Range {
  i64 begin, end;
};

/// The part of [0, total) that belongs to one thread.
LATHE_INLINE Range splitEvenly(i64 total, u32 thread, u32 threads) {
  return {total * thread / threads, total * (thread + 1) / threads};
}

constexpr i64 ceilDivide(i64 a, i64 b) { return (a + b - 1) / b; }

/// The memory of one element region's side operands for 32 columns of one row:
/// for Element and Column the values [0, 32) (padded where the row ends), for
/// Row the value of the row.
struct SideBlock {
  const f32 *at;
};

/// Applies the region of `S` to columns [c, c + width) of a block; `values`
/// are its accumulators or its one value.
template <typename S, typename... Values, u32... side>
LATHE_INLINE Floats applyMapImpl(Sequence<u32, side...>,
                                 const SideBlock *blocks, u32 c,
                                 Values... values) {
  return S::template map<Floats>(values...,
                                 [&]() __attribute__((always_inline)) {
                                   if constexpr (sideAt<S, side>() == Side::Row)
                                     return Floats::splat(*blocks[side].at);
                                   else
                                     return load<Floats>(blocks[side].at + c);
                                 }()...);
}
template <typename S, typename... Values>
LATHE_INLINE Floats applyMap(const SideBlock *blocks, u32 c, Values... values) {
  return applyMapImpl<S>(Indices<S::sideCount>{}, blocks, c, values...);
}

/// Finds the side operands of columns [column, column + 32) of `row`, of which
/// `valid` exist; where fewer than 32 do, from a padded copy.
template <typename S> struct SideBlocks {
  static constexpr u32 slots = S::sideCount == 0 ? 1 : S::sideCount;
  SideBlock blocks[slots];
  f32 padded[slots][32];

  LATHE_INLINE void find(const void *const *sides, i64 n, i64 row, i64 column,
                         i64 valid) {
    forEach<S::sideCount>([&]<u32 i>() __attribute__((always_inline)) {
      constexpr Side kind = sideAt<S, i>();
      const f32 *at = static_cast<const f32 *>(sides[i]);
      if constexpr (kind == Side::Row) {
        blocks[i].at = at + row;
      } else {
        at += column;
        if constexpr (kind == Side::Element)
          at += row * n;
        if (__builtin_expect(valid < 32, 0)) {
          for (i64 c = 0; c < 32; ++c)
            padded[i][c] = c < valid ? at[c] : 0.0f;
          at = padded[i];
        }
        blocks[i].at = at;
      }
    });
  }
};

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_SKELETON_H

/// \file
/// The butterfly of docs/numerics.md, "Rotary embedding and KV append": spreads
/// what is large in a few dimensions of a key over all, so that one int8 scale
/// fits them.
#ifndef LATHE_KERNELS_CPU_BUTTERFLY_H
#define LATHE_KERNELS_CPU_BUTTERFLY_H

#include "kernels/cpu/Skeleton.h"
#include "kernels/cpu/simd/Simd.h"

namespace lathe::kernels::inline LATHE_ISA {

/// Values that are turned together: the largest power of two in n.
template <i64 n> inline constexpr i64 butterflyRun = n & -n;

/// Lanes i and i + h, for all i without bit h, become their sum and difference.
template <u32 h, u32... lane>
LATHE_INLINE Floats butterflyLanes(Floats x, Sequence<u32, lane...>) {
  constexpr IntLanes upper = {(lane & h ? -1 : 0)...};
  Floats other = {__builtin_shufflevector(x.v, x.v, (lane ^ h)...)};
  return select(upper, other - x, x + other);
}

/// Turns x[0, n) in place, in runs of butterflyRun; x[n, ..) up to the next
/// multiple of 16 is touched, and stays 0 if it is.
template <i64 n> LATHE_INLINE void butterfly(f32 *x) {
  constexpr i64 run = butterflyRun<n>, padded = ceilDivide(n, 16) * 16;
  for (i64 i = 0; i < padded; i += width) {
    Floats v = load<Floats>(x + i);
    if constexpr (run > 1)
      v = butterflyLanes<1>(v, Indices<width>{});
    if constexpr (run > 2)
      v = butterflyLanes<2>(v, Indices<width>{});
    if constexpr (run > 4)
      v = butterflyLanes<4>(v, Indices<width>{});
    if constexpr (run > 8 && width > 8)
      v = butterflyLanes<8 % width>(v, Indices<width>{});
    store(x + i, v);
  }
  for (i64 h = width; h < run; h *= 2)
    for (i64 i = 0; i < n; i += 2 * h)
      for (i64 j = i; j < i + h; j += width) {
        Floats a = load<Floats>(x + j), b = load<Floats>(x + j + h);
        store(x + j, a + b);
        store(x + j + h, a - b);
      }
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_BUTTERFLY_H

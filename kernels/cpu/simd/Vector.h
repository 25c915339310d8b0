/// \file
/// The lane types of the kernels, and what needs no instruction of its own: all
/// of it compiles from vector extensions on every ISA layer.
///
/// A *native row* is `width` f32 lanes: 16 (generic, avx512) or 8 (avx2). A
/// `Floats` is also the `V` that printed element regions are instantiated with.
/// Lane trees are defined on 16 virtual lanes everywhere (docs/numerics.md):
/// `halves` native rows.
#ifndef LATHE_KERNELS_CPU_SIMD_VECTOR_H
#define LATHE_KERNELS_CPU_SIMD_VECTOR_H

#include "kernels/abi/StepArgs.h"

// AVX512_BF16 changes one primitive of the layer that it belongs to.
#ifdef LATHE_ISA_AVX512BF16
#define LATHE_ISA_AVX512
#endif

#if defined(LATHE_ISA_AVX512) && defined(LATHE_SIMD_EMULATE)
#define LATHE_ISA avx512_emulated
#elif defined(LATHE_ISA_AVX512BF16)
#define LATHE_ISA avx512bf16
#elif defined(LATHE_ISA_AVX512)
#define LATHE_ISA avx512
#elif defined(LATHE_ISA_AVX2)
#define LATHE_ISA avx2
#elif defined(LATHE_ISA_GENERIC)
#define LATHE_ISA generic
#else
#error "Define LATHE_ISA_ and GENERIC, AVX2, AVX512 or AVX512BF16"
#endif

// All functions on lane types are inlined, so no ABI is involved.
#pragma clang diagnostic ignored "-Wpsabi"

#define LATHE_INLINE inline __attribute__((always_inline))
#define LATHE_UNROLL _Pragma("clang loop unroll(full)")

namespace lathe::kernels::inline LATHE_ISA {

/// f32 lanes of a native row.
#ifdef LATHE_ISA_AVX2
inline constexpr u32 width = 8;
#else
inline constexpr u32 width = 16;
#endif
/// Native rows in 16 lanes.
inline constexpr u32 halves = 16 / width;

using FloatLanes = f32 __attribute__((vector_size(4 * width)));
using IntLanes = i32 __attribute__((vector_size(4 * width)));
using UIntLanes = u32 __attribute__((vector_size(4 * width)));
using ShortLanes = i16 __attribute__((vector_size(4 * width)));
using UShortLanes = u16 __attribute__((vector_size(4 * width)));
/// 4 bytes (of 4 consecutive k) per row.
using ByteLanes = u8 __attribute__((vector_size(4 * width)));
/// One byte, one signed byte, one u16 per row.
using RowBytes = u8 __attribute__((vector_size(width)));
using RowSignedBytes = i8 __attribute__((vector_size(width)));
using RowShorts = u16 __attribute__((vector_size(2 * width)));

/// `width` f32 values.
struct Floats {
  FloatLanes v;

  static LATHE_INLINE Floats splat(f32 x) {
    using Splat = f32 __attribute__((ext_vector_type(width)));
    return {__builtin_bit_cast(FloatLanes, Splat(x))};
  }
};

/// `width` i32 values.
struct Ints {
  IntLanes v;

  static LATHE_INLINE Ints splat(i32 x) { return {IntLanes{} + x}; }
};

LATHE_INLINE Floats operator+(Floats a, Floats b) { return {a.v + b.v}; }
LATHE_INLINE Floats operator-(Floats a, Floats b) { return {a.v - b.v}; }
LATHE_INLINE Floats operator*(Floats a, Floats b) { return {a.v * b.v}; }
LATHE_INLINE Floats operator/(Floats a, Floats b) { return {a.v / b.v}; }
LATHE_INLINE Floats operator-(Floats a) { return {-a.v}; }
LATHE_INLINE Ints operator+(Ints a, Ints b) { return {a.v + b.v}; }
LATHE_INLINE Ints operator*(Ints a, Ints b) { return {a.v * b.v}; }

/// The bits of a value as another type of the same size.
template <typename To, typename From> LATHE_INLINE To bitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}

/// Any lane type from memory of any alignment, and back.
template <typename T> LATHE_INLINE T load(const void *from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}
template <typename T> LATHE_INLINE void store(void *to, T value) {
  __builtin_memcpy(to, &value, sizeof(value));
}

LATHE_INLINE Floats toFloats(Ints a) {
  return {__builtin_convertvector(a.v, FloatLanes)};
}

/// One integer per row, widened.
template <typename Rows> LATHE_INLINE Ints widen(Rows rows) {
  return {__builtin_convertvector(rows, IntLanes)};
}

/// Lane by lane mask ? a : b; mask lanes are 0 or -1.
LATHE_INLINE Floats select(IntLanes mask, Floats a, Floats b) {
  return {mask ? a.v : b.v};
}

LATHE_INLINE Floats sqrt(Floats a) { return {__builtin_elementwise_sqrt(a.v)}; }

LATHE_INLINE Floats abs(Floats a) {
  return {bitsAs<FloatLanes>(bitsAs<IntLanes>(a.v) & 0x7fffffff)};
}

/// The larger one if neither is NaN (then: b); a zero of either sign.
LATHE_INLINE Floats maxOrdered(Floats a, Floats b) {
  return select(a.v > b.v, a, b);
}

/// arith.maximumf: NaN if either is, and +0 above -0.
LATHE_INLINE Floats max(Floats a, Floats b) {
  Floats r = select(a.v > b.v, a, b);
  IntLanes both = bitsAs<IntLanes>(a.v) & bitsAs<IntLanes>(b.v);
  r = select(a.v == b.v, {bitsAs<FloatLanes>(both)}, r);
  return select(a.v != a.v, a, r);
}

/// arith.minimumf: NaN if either is, and -0 below +0.
LATHE_INLINE Floats min(Floats a, Floats b) {
  Floats r = select(a.v < b.v, a, b);
  IntLanes either = bitsAs<IntLanes>(a.v) | bitsAs<IntLanes>(b.v);
  r = select(a.v == b.v, {bitsAs<FloatLanes>(either)}, r);
  return select(a.v != a.v, a, r);
}

/// The value of bf16 bits in the low half of each lane.
LATHE_INLINE Floats brainToFloats(UIntLanes bits) {
  return {bitsAs<FloatLanes>(bits << 16)};
}

/// Rounds to bf16, nearest even; a NaN stays one.
LATHE_INLINE RowShorts roundToBrain(Floats x) {
  UIntLanes bits = bitsAs<UIntLanes>(x.v);
  UIntLanes rounded = bits + 0x7fff + ((bits >> 16) & 1);
  rounded = x.v == x.v ? rounded : bits | 0x400000;
  return __builtin_convertvector(rounded >> 16, RowShorts);
}

/// `width` values from `from`; lanes >= count are +0 and are not read.
LATHE_INLINE Floats loadFirst(const f32 *from, i64 count) {
  if (count >= i64(width))
    return load<Floats>(from);
  f32 lanes[width] = {};
  for (i64 i = 0; i < count; ++i)
    lanes[i] = from[i];
  return load<Floats>(lanes);
}

/// The first min(count, width) lanes to `to`.
LATHE_INLINE void storeFirst(f32 *to, Floats value, i64 count) {
  if (count >= i64(width))
    return store(to, value);
  f32 lanes[width];
  store(lanes, value);
  for (i64 i = 0; i < count; ++i)
    to[i] = lanes[i];
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_SIMD_VECTOR_H

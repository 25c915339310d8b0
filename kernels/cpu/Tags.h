/// \file
/// The names that printed kernel structures use, the same on every ISA layer.
/// Freestanding.
#ifndef LATHE_KERNELS_CPU_TAGS_H
#define LATHE_KERNELS_CPU_TAGS_H

#include "kernels/abi/Types.h"

namespace lathe::kernels {

/// How rows are stored: f32 [rows][n], or ActivationBlock
/// [rows][ceil(n / 32)].
enum class Store { F32, Q8 };

/// What a side operand is indexed by: f32 [rows][n], f32 [n] or f32 [rows].
enum class Side { Element, Column, Row };

/// A list of printed structures.
template <typename... Types> struct TypeList {
  static constexpr u32 size = sizeof...(Types);
};

} // namespace lathe::kernels

#endif // LATHE_KERNELS_CPU_TAGS_H

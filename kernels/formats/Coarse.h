/// \file
/// A Q8_0 matrix rounded to Q5_0: what kernel.pick reads in place of the head
/// to find the few rows that can win (docs/numerics.md, "Picking from a coarse
/// head"). Thread-safe; `k` is a multiple of 32, rows are in ggml's layout.
#ifndef LATHE_KERNELS_FORMATS_COARSE_H
#define LATHE_KERNELS_FORMATS_COARSE_H

#include <cstdint>

namespace lathe::kernels {

/// Writes k elements of Q5_0 to `coarse`: each block's scale is 8 or -8 times
/// that of `row`, whichever brings the values nearer. A scale beyond f16
/// becomes infinite.
void coarsenRow(const uint8_t *row, uint64_t k, uint8_t *coarse);

/// A bound, per unit of the length of a quantized activation row, of what its
/// exact product with `row`, as the head's gemm rounds it, is above that with
/// the coarse row, as a gemm rounds that: the length of their difference and
/// the roundings of both. NaN or infinite if a scale is.
float coarseError(const uint8_t *row, uint64_t k);

} // namespace lathe::kernels

#endif // LATHE_KERNELS_FORMATS_COARSE_H

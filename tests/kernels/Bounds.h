/// \file
/// How far f32 results may lie from the same computation in double, and why.
/// These judge the contract and the kernels' meaning; two implementations of
/// the contract are compared bit for bit and need no bound.
///
/// The bounds of sums are the textbook ones (Higham, Accuracy and Stability of
/// Numerical Algorithms, section 3.1): an f32 operation errs by at most u times
/// its result, so a chain of n of them errs by at most about n·u times the sum
/// of the terms' magnitudes. They hold for every input, so a test that passes
/// does so for no luck of its seed.
#ifndef LATHE_TESTS_KERNELS_BOUNDS_H
#define LATHE_TESTS_KERNELS_BOUNDS_H

#include "kernels/abi/Types.h"

namespace lathe::tests::bounds {

/// Half the distance from 1 to the next f32: one rounding's relative error.
inline constexpr f64 unit = 0x1p-24;

/// exp, in units of the last place of the result, for results that are normal:
/// 1.01035 at x = -5.87788 is the worst of all 570 million arguments.
inline constexpr f64 expUlp = 1.02;

/// tanh, absolute: 2^-23.41 at 1.94 is the worst of every seventh argument.
inline constexpr f64 tanhAbsolute = 0x1p-23;

/// SiLU, relative: exp (2 units), the sum and the quotient (1 each); the
/// rounded sum keeps less of exp's error than all of it.
inline constexpr f64 siluRelative = 4 * unit;

/// GELU, relative to |x|: tanh's error halved, the roundings of its argument
/// (5 of them, damped by z·tanh'(z) < 0.45), the sum and two products.
inline constexpr f64 geluRelativeToInput = 6 * unit;

/// An int8 activation, in units of its block's scale d: half a step, and three
/// roundings (1 / amax, the product, d itself) of a value up to 127.
inline constexpr f64 quantizedSteps = 0.5 + 127 * 4 * unit;

/// One output of a gemm against the exact sum of the exact products of weights
/// and (quantized) activations. `steps` is the fmas of the chain, `magnitudes`
/// the sum of the magnitudes of what they add. Each term carries one rounding
/// of its factors more, and the weights' own f32 values one.
constexpr f64 gemm(u64 steps, f64 magnitudes) {
  return f64(steps + 3) * unit * magnitudes;
}

/// The factor of an RMS norm over k values, relative: chains of k / 16 and a
/// tree of 4, halved by the root; quotient, sum, root and reciprocal.
constexpr f64 rmsRelative(u64 k) { return (f64(k) / 16 / 2 + 6) * unit; }

/// A rotated value, relative to |x0| + |x1|: the product and the fma.
inline constexpr f64 ropeRelative = 2 * unit;

/// An element of an attention's output, in units of the largest magnitude of
/// the values seen. `scores` is the largest Σ|q_d·k_jd| over the keys. A score
/// errs by (headDim + 1)·u·scores (softcap c: and by c·tanhAbsolute and three
/// roundings), its difference to the maximum by two more; p by that, relative,
/// and by exp's 2.04 u. The sums of p and of p·v are chains over `keys` values,
/// rescaled once per chunk with six roundings and two exps.
constexpr f64 attention(u64 headDim, u64 keys, u64 chunks, f64 scores,
                        f64 softcap) {
  f64 score =
      f64(headDim + 3) * unit * scores + softcap * (tanhAbsolute + 3 * unit);
  return 2 * score + f64(2 * keys + 12 * chunks + 16) * unit;
}

} // namespace lathe::tests::bounds

#endif // LATHE_TESTS_KERNELS_BOUNDS_H

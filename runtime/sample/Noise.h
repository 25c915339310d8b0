/// \file
/// The noise of sampling: a pure function of (seed, position, token).
///
/// Sampling takes the argmax of logit / T + Gumbel noise, which draws from the
/// softmax (Gumbel-max). The noise comes from a counter-based generator, so it
/// does not depend on the batch, on what was drawn before or on a draft.
#ifndef LATHE_RUNTIME_SAMPLE_NOISE_H
#define LATHE_RUNTIME_SAMPLE_NOISE_H

#include "kernels/abi/Types.h"

#include <array>

namespace lathe::runtime {

/// Philox4x32-10: four random words of a 128-bit counter and a 64-bit key.
/// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
constexpr std::array<u32, 4> philox4x32(std::array<u32, 4> counter,
                                        std::array<u32, 2> key) {
  for (int round = 0; round < 10; ++round) {
    u64 product0 = u64(0xd2511f53u) * counter[0];
    u64 product1 = u64(0xcd9e8d57u) * counter[2];
    counter = {u32(product1 >> 32) ^ counter[1] ^ key[0], u32(product1),
               u32(product0 >> 32) ^ counter[3] ^ key[1], u32(product0)};
    key = {key[0] + 0x9e3779b9u, key[1] + 0xbb67ae85u};
  }
  return counter;
}

/// The words of tokens 4 * block to 4 * block + 3 at a position.
constexpr std::array<u32, 4> noiseWords(u64 seed, u32 position, u32 block) {
  return philox4x32({block, position, 0, 0}, {u32(seed), u32(seed >> 32)});
}

/// ln(x) of a positive normal number: 2 atanh((m - 1) / (m + 1)) + e ln 2 with
/// x = m 2^e, m in [sqrt(1/2), sqrt(2)), the series up to s^21. Plain f64
/// operations in this order and no libm, so that every target can have the same
/// bits. Relative error below 1e-15 (tests/unit/sample).
constexpr f64 naturalLog(f64 x) {
  u64 bits = __builtin_bit_cast(u64, x);
  // sqrt(1/2) in bits: subtracted, the exponent field counts from there.
  u64 shifted = bits - 0x3fe6a09e667f3bcdu;
  i64 exponent = i64(shifted) >> 52;
  f64 m = __builtin_bit_cast(f64, bits - (u64(exponent) << 52));
  f64 s = (m - 1) / (m + 1);
  f64 z = s * s;
  f64 sum = 1.0 / 21;
  for (int denominator = 19; denominator >= 1; denominator -= 2)
    sum = sum * z + 1.0 / denominator;
  constexpr f64 ln2High = 0x1.62e42fefa3800p-1; // 42 bits: e * ln2High is exact
  constexpr f64 ln2Low = 0x1.ef35793c76730p-45;
  return f64(exponent) * ln2High + (2 * s * sum + f64(exponent) * ln2Low);
}

/// Gumbel noise -ln(-ln(u)), u = (word + 1/2) / 2^32, between -3.13 and 22.88.
constexpr f64 gumbel(u32 word) {
  f64 u = (f64(word) + 0.5) * 0x1p-32;
  return -naturalLog(-naturalLog(u));
}

/// The noise of a token at a position.
constexpr f64 noiseOf(u64 seed, u32 position, u32 token) {
  return gumbel(noiseWords(seed, position, token / 4)[token % 4]);
}

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SAMPLE_NOISE_H

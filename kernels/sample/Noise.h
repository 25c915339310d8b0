/// \file
/// The noise that sampling adds to logit / T before the argmax, for the runtime
/// and for generated kernels. Freestanding: includes kernels/abi/Types.h only.
/// The definition is docs/numerics.md, "Picking a token".
///
/// Every function is inlined: the code of one ISA layer must not become
/// another's.
#ifndef LATHE_KERNELS_SAMPLE_NOISE_H
#define LATHE_KERNELS_SAMPLE_NOISE_H

#include "kernels/abi/Types.h"

namespace lathe::kernels {

/// Four random words; those of noiseWords() belong to four tokens.
struct NoiseWords {
  u32 word[4];

  friend constexpr bool operator==(const NoiseWords &,
                                   const NoiseWords &) = default;
};

/// Philox4x32-10: four random words of a 128-bit counter and a 64-bit key.
/// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
__attribute__((always_inline)) constexpr NoiseWords
philox4x32(NoiseWords counter, u32 key0, u32 key1) {
  u32 c0 = counter.word[0], c1 = counter.word[1];
  u32 c2 = counter.word[2], c3 = counter.word[3];
  for (int round = 0; round < 10; ++round) {
    u64 product0 = u64(0xd2511f53u) * c0;
    u64 product1 = u64(0xcd9e8d57u) * c2;
    c0 = u32(product1 >> 32) ^ c1 ^ key0;
    c1 = u32(product1);
    c2 = u32(product0 >> 32) ^ c3 ^ key1;
    c3 = u32(product0);
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return {{c0, c1, c2, c3}};
}

/// The words of tokens 4 * block to 4 * block + 3 at a position.
__attribute__((always_inline)) constexpr NoiseWords
noiseWords(u64 seed, u32 position, u32 block) {
  return philox4x32({{block, position, 0, 0}}, u32(seed), u32(seed >> 32));
}

/// ln(x) of a positive normal number: 2 atanh((m - 1) / (m + 1)) + e ln 2 with
/// x = m 2^e, m in [sqrt(1/2), sqrt(2)), the series up to s^21. Plain f64
/// operations in this order and no libm, so that every target can have the same
/// bits. Relative error below 1e-15 (tests/unit/sample).
__attribute__((always_inline)) constexpr f64 naturalLog(f64 x) {
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
__attribute__((always_inline)) constexpr f64 gumbel(u32 word) {
  f64 u = (f64(word) + 0.5) * 0x1p-32;
  return -naturalLog(-naturalLog(u));
}

/// No noise is above this.
inline constexpr f64 largestNoise = 22.9;

/// An upper bound of gumbel(word), cheap. With w = 1 - u, -ln(u) >= w, so the
/// noise is at most -ln(w); w >= 2^(-1 - z) where ~word has z leading zeros.
__attribute__((always_inline)) constexpr f32 gumbelBound(u32 word) {
  constexpr f32 ln2Above = 0.6931473f;
  u32 inverse = ~word;
  i32 zeros = inverse == 0 ? 32 : __builtin_clz(inverse);
  return f32(zeros + 1) * ln2Above;
}

/// The noise of a token at a position.
__attribute__((always_inline)) constexpr f64 noiseOf(u64 seed, u32 position,
                                                     u32 token) {
  return gumbel(noiseWords(seed, position, token / 4).word[token % 4]);
}

/// The share of the largest logit below which min-p cuts, as a logit: a little
/// below the last one that it keeps, without an exp.
__attribute__((always_inline)) constexpr f32 minPFloor(f32 maximum, f32 minP) {
  f32 magnitude = maximum < 0 ? -maximum : maximum;
  return maximum + f32(naturalLog(f64(minP))) - 0.01f - 1e-5f * magnitude;
}

} // namespace lathe::kernels

#endif // LATHE_KERNELS_SAMPLE_NOISE_H

/// \file
/// Seeded inputs for the kernel tests, the same with every library.
#ifndef LATHE_TESTS_KERNELS_CONTRACT_RANDOM_H
#define LATHE_TESTS_KERNELS_CONTRACT_RANDOM_H

#include "kernels/formats/Format.h"
#include "tests/kernels/contract/Contract.h"
#include "tests/unit/formats/SplitMix64.h"

#include <cmath>
#include <vector>

namespace lathe::tests {

/// Values, weights and choices from one seed.
class RandomInputs {
public:
  explicit RandomInputs(u64 seed) : stream(seed) {}

  /// Uniform in [low, high).
  f32 uniform(f32 low, f32 high) {
    return f32(low + (f64(high) - low) * f64(stream.next() >> 11) * 0x1p-53);
  }

  /// Uniform in [0, count).
  u32 below(u32 count) { return u32(stream.next() % count); }

  /// Roughly normal, scale 1, with a rare outlier of 8 as activations have.
  f32 activation() {
    f32 sum = 0;
    for (int i = 0; i < 6; ++i)
      sum += uniform(-1, 1);
    return below(97) == 0 ? 8 * sum : sum * 0.70710678f;
  }

  std::vector<f32> activations(u64 count) {
    std::vector<f32> values(count);
    for (f32 &value : values)
      value = activation();
    return values;
  }

  /// `rows` rows of `k` weights in GGUF order: random bits, but finite values
  /// (BF16, F32) and scales of magnitude 2^-11 to 2^-6.
  std::vector<u8> weights(kernels::Format format, u64 rows, u64 k) {
    std::vector<u8> out =
        stream.bytes(rows * contract::weightRowBytes(format, k));
    const kernels::FormatTraits &traits = kernels::traitsOf(format);
    u64 step = contract::weightRowBytes(format, traits.blockElems);
    for (u64 at = 0; at < out.size(); at += step)
      tame(format, &out[at]);
    return out;
  }

private:
  static void limitHalf(u8 *half) {
    half[1] = u8((half[1] & 0x83) | ((4 + ((half[1] >> 2) & 3)) << 2));
  }

  static void tame(kernels::Format format, u8 *block) {
    using kernels::Format;
    switch (format) {
    case Format::F32: // exponent 120 .. 127
      block[3] = u8((block[3] & 0x80) | 0x3c | (block[3] & 3));
      break;
    case Format::BF16:
      block[1] = u8((block[1] & 0x80) | 0x3c | (block[1] & 3));
      break;
    case Format::F16:
    case Format::Q4_0:
    case Format::Q5_0:
    case Format::Q8_0:
    case Format::IQ4_NL:
    case Format::IQ4_XS:
      limitHalf(block);
      break;
    case Format::Q4_1:
    case Format::Q5_1:
    case Format::Q4_K:
    case Format::Q5_K:
      limitHalf(block);
      limitHalf(block + 2);
      break;
    case Format::Q2_K:
      limitHalf(block + 80);
      limitHalf(block + 82);
      break;
    case Format::Q3_K:
      limitHalf(block + 108);
      break;
    case Format::Q6_K:
      limitHalf(block + 208);
      break;
    }
  }

  SplitMix64 stream;
};

} // namespace lathe::tests

#endif // LATHE_TESTS_KERNELS_CONTRACT_RANDOM_H

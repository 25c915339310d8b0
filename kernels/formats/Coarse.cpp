#include "kernels/formats/Coarse.h"

#include "kernels/formats/BlockCodec.h"
#include "runtime/support/Fp16.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace lathe::kernels {

namespace {

constexpr uint32_t elems = 32;
constexpr uint32_t fineBytes = traitsOf(Format::Q8_0).blockBytes;
constexpr uint32_t coarseBytes = traitsOf(Format::Q5_0).blockBytes;

/// A block of both, in units of the fine scale: fine values are codes, coarse
/// ones 8 * sign * (code - 16).
struct BlockPair {
  BlockFields fine;
  int sign = 1;
  uint8_t codes[elems];

  explicit BlockPair(const uint8_t *block) {
    splitBlock(Format::Q8_0, block, fine);
    uint8_t flipped[elems];
    if (round(-1, flipped) < round(1, codes)) {
      sign = -1;
      std::copy_n(flipped, elems, codes);
    }
  }

  double scale() const {
    return static_cast<double>(runtime::f16ToF32(fine.half[0]));
  }
  int value(uint32_t i) const { return static_cast<int8_t>(fine.codes[i]); }
  int difference(uint32_t i) const {
    return value(i) - 8 * sign * (codes[i] - 16);
  }

private:
  /// Fills `to` for a sign; returns the sum of the squared differences. 124 and
  /// above has no code: where it occurs, the other sign is better.
  int round(int sign, uint8_t *to) const {
    int sum = 0;
    for (uint32_t i = 0; i < elems; ++i) {
      int nearest = (sign * value(i) + 128 + 4) / 8; // not negative
      to[i] = static_cast<uint8_t>(std::min(nearest, 31));
      int off = sign * value(i) - 8 * (to[i] - 16);
      sum += off * off;
    }
    return sum;
  }
};

} // namespace

void coarsenRow(const uint8_t *row, uint64_t k, uint8_t *coarse) {
  assert(k % elems == 0);
  for (uint64_t i = 0; i < k; i += elems) {
    BlockPair pair(row);
    BlockFields fields = {};
    fields.half[0] =
        runtime::f32ToF16(static_cast<float>(8 * pair.sign * pair.scale()));
    std::copy_n(pair.codes, elems, fields.codes);
    joinBlock(Format::Q5_0, fields, coarse);
    row += fineBytes;
    coarse += coarseBytes;
  }
}

float coarseError(const uint8_t *row, uint64_t k) {
  assert(k % elems == 0);
  double differences = 0, values = 0;
  for (uint64_t i = 0; i < k; i += elems, row += fineBytes) {
    BlockPair pair(row);
    int difference = 0, value = 0;
    for (uint32_t j = 0; j < elems; ++j) {
      difference += pair.difference(j) * pair.difference(j);
      value += pair.value(j) * pair.value(j);
    }
    differences += pair.scale() * pair.scale() * difference;
    values += pair.scale() * pair.scale() * value;
  }
  double off = std::sqrt(differences);
  double rounding = static_cast<double>(k / elems + 2) * 0x1p-22;
  // What these sums and the conversion round away stays far below the factor.
  return static_cast<float>((off + rounding * (off + std::sqrt(values))) *
                            (1 + 0x1p-20));
}

} // namespace lathe::kernels

#include "tests/kernels/contract/Contract.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lathe::contract {

ActivationBlock quantizeBlock(const f32 *values) {
  u32 largest = 0;
  for (int i = 0; i < 32; ++i)
    largest = std::max(largest, std::bit_cast<u32>(values[i]) & 0x7fffffffu);
  f32 amax = std::bit_cast<f32>(largest);

  ActivationBlock block = {};
  if (!std::isfinite(amax)) {
    block.d = std::bit_cast<f32>(0x7fc00000u);
    return block;
  }
  if (amax < 0x1p-100f)
    return block;

  block.d = amax / 127.0f;
  f32 s = 127.0f / amax;
  for (int i = 0; i < 32; ++i) {
    block.q[i] = i8(std::nearbyint(values[i] * s));
    block.laneSum[i / 16][(i % 4) / 2] += block.q[i];
  }
  return block;
}

void quantizeRow(const f32 *row, u64 k, ActivationBlock *blocks) {
  for (u64 start = 0; start < k; start += 32) {
    f32 values[32] = {};
    for (u64 i = 0; i < 32 && start + i < k; ++i)
      values[i] = row[start + i];
    blocks[start / 32] = quantizeBlock(values);
  }
}

} // namespace lathe::contract

#include "tests/kernels/contract/Contract.h"

#include <cmath>

namespace lathe::contract {

f32 rmsScale(const f32 *row, u64 k, f32 epsilon) {
  f32 s[16] = {};
  for (u64 i = 0; i < k; ++i)
    s[i % 16] = std::fma(row[i], row[i], s[i % 16]);
  f32 sum = tree16(s);
  return 1.0f / std::sqrt(sum / f32(k) + epsilon);
}

void ropePair(f32 &x0, f32 &x1, f32 cos, f32 sin) {
  f32 y0 = std::fma(x0, cos, -(x1 * sin));
  f32 y1 = std::fma(x1, cos, x0 * sin);
  x0 = y0;
  x1 = y1;
}

void prepareHead(const HeadRecipe &recipe, const f32 *table, f32 *head) {
  if (recipe.norm) {
    f32 r = rmsScale(head, recipe.headDim, recipe.epsilon);
    for (u64 i = 0; i < recipe.headDim; ++i)
      head[i] = (head[i] * r) * recipe.norm[i];
  }
  for (u64 i = 0; i < recipe.ropePairs; ++i) {
    bool adjacent = recipe.style == RopeStyle::Adjacent;
    u64 first = adjacent ? 2 * i : i;
    u64 second = adjacent ? 2 * i + 1 : i + recipe.ropePairs;
    ropePair(head[first], head[second], table[2 * i], table[2 * i + 1]);
  }
  if (recipe.scale)
    for (u64 i = 0; i < recipe.headDim; ++i)
      head[i] = head[i] * *recipe.scale;
}

} // namespace lathe::contract

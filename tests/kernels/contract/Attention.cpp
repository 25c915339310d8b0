#include "tests/kernels/contract/Contract.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lathe::contract {

static bool isVisible(const AttentionShape &shape, u32 row, u32 key) {
  return key <= row && (shape.window == 0 || row - key < shape.window);
}

std::optional<AttentionPartial> attentionChunk(const AttentionShape &shape,
                                               const f32 *query, const u8 *keys,
                                               const u8 *values, u32 position,
                                               u32 chunk) {
  constexpr f32 hidden = -std::numeric_limits<f32>::infinity();
  u32 first = chunk * shape.chunk;
  bool any = false;

  std::vector<f32> p(shape.chunk);
  for (u32 j = 0; j < shape.chunk; ++j) {
    p[j] = hidden;
    if (!isVisible(shape, position, first + j))
      continue;
    any = true;
    f32 s = 0.0f;
    for (u64 d = 0; d < shape.headDim; ++d)
      s = std::fma(
          query[d],
          fromCache(shape.type, keys, u64(first + j) * shape.headDim + d), s);
    if (shape.softcap > 0)
      s = shape.softcap * tanhf(s * (1.0f / shape.softcap));
    p[j] = s;
  }
  if (!any)
    return std::nullopt;

  AttentionPartial partial;
  // A NaN score makes l and o NaN below, whatever the maximum is.
  partial.m = hidden;
  for (f32 s : p)
    partial.m = std::max(partial.m, s);
  for (f32 &s : p)
    s = expf(s - partial.m);

  // j counts positions, and chunks begin at multiples of 16, so j mod 16 is the
  // index in the chunk mod 16.
  partial.l = laneSum(p.data(), p.size());

  partial.o.assign(shape.headDim, 0.0f);
  for (u32 j = 0; j < shape.chunk; ++j)
    if (isVisible(shape, position, first + j))
      for (u64 d = 0; d < shape.headDim; ++d)
        partial.o[d] = std::fma(
            p[j],
            fromCache(shape.type, values, u64(first + j) * shape.headDim + d),
            partial.o[d]);
  return partial;
}

void combine(AttentionPartial &left, const AttentionPartial &right) {
  f32 m = std::max(left.m, right.m);
  f32 a = expf(left.m - m);
  f32 b = expf(right.m - m);
  left.m = m;
  left.l = std::fma(left.l, a, right.l * b);
  for (u64 d = 0; d < left.o.size(); ++d)
    left.o[d] = std::fma(left.o[d], a, right.o[d] * b);
}

void attentionRow(const AttentionShape &shape, const f32 *query, const u8 *keys,
                  const u8 *values, u32 position, f32 *out) {
  AttentionPartial all;
  bool first = true;
  u32 chunks = position / shape.chunk + 1;
  for (u32 chunk = 0; chunk < chunks; ++chunk) {
    std::optional<AttentionPartial> next =
        attentionChunk(shape, query, keys, values, position, chunk);
    if (!next)
      continue;
    if (first)
      all = *next;
    else
      combine(all, *next);
    first = false;
  }
  f32 inverse = 1.0f / all.l;
  for (u64 d = 0; d < shape.headDim; ++d)
    out[d] = all.o[d] * inverse;
}

} // namespace lathe::contract

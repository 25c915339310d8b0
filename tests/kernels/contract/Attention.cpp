#include "tests/kernels/contract/Contract.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lathe::contract {

static bool isVisible(const AttentionShape &shape, u32 row, u32 key) {
  return key <= row && (shape.window == 0 || row - key < shape.window);
}

/// The product of a query and a key, of int8 a key behind the butterfly.
static f32 scoreOf(const AttentionShape &shape, const f32 *query,
                   const u8 *key) {
  f32 s = 0.0f;
  if (shape.type != KvType::Int8) {
    for (u64 d = 0; d < shape.headDim; ++d)
      s = std::fma(query[d], fromCache(shape.type, key, d), s);
    return s;
  }
  std::vector<f32> turned(query, query + shape.headDim);
  u64 run = butterfly(turned.data(), shape.headDim);
  for (f32 &q : turned)
    q *= 1.0f / f32(run);
  std::vector<ActivationBlock> blocks((shape.headDim + 31) / 32);
  quantizeRow(turned.data(), shape.headDim, blocks.data());
  for (u64 b = 0; b < blocks.size(); ++b) {
    int sum = 0;
    for (u64 d = 32 * b; d < std::min(32 * b + 32, shape.headDim); ++d)
      sum += blocks[b].q[d % 32] * int(fromCache(shape.type, key, d));
    s = std::fma(f32(sum), blocks[b].d, s);
  }
  return s * scaleOf(key);
}

/// o of one chunk of `p.size()` keys, whose first one's value is `values`;
/// sees(j) says whether key j is visible.
template <typename Sees>
static std::vector<f32> weigh(const AttentionShape &shape,
                              const std::vector<f32> &p, const u8 *values,
                              Sees sees) {
  std::vector<f32> o(shape.headDim, 0.0f);
  u64 rowBytes = kvRowBytes(shape.type, shape.headDim);
  if (shape.type != KvType::Int8) {
    for (u64 j = 0; j < p.size(); ++j)
      if (sees(j))
        for (u64 d = 0; d < shape.headDim; ++d)
          o[d] = std::fma(p[j], fromCache(shape.type, values + j * rowBytes, d),
                          o[d]);
    return o;
  }
  std::vector<f32> weights(p.size(), 0.0f);
  for (u64 j = 0; j < p.size(); ++j)
    if (sees(j))
      weights[j] = p[j] * scaleOf(values + j * rowBytes);
  std::vector<ActivationBlock> blocks(p.size() / 32);
  quantizeRow(weights.data(), p.size(), blocks.data());
  for (u64 b = 0; b < blocks.size(); ++b)
    for (u64 d = 0; d < shape.headDim; ++d) {
      int sum = 0;
      for (u64 j = 32 * b; j < 32 * b + 32; ++j)
        if (sees(j))
          sum += blocks[b].q[j % 32] *
                 int(fromCache(shape.type, values + j * rowBytes, d));
      o[d] = std::fma(f32(sum), blocks[b].d, o[d]);
    }
  return o;
}

std::optional<AttentionPartial> attentionChunk(const AttentionShape &shape,
                                               const f32 *query, const u8 *keys,
                                               const u8 *values, u32 position,
                                               u32 chunk) {
  constexpr f32 hidden = -std::numeric_limits<f32>::infinity();
  u32 first = chunk * shape.chunk;
  u64 rowBytes = kvRowBytes(shape.type, shape.headDim);
  auto sees = [&](u64 j) { return isVisible(shape, position, first + u32(j)); };
  bool any = false;

  std::vector<f32> p(shape.chunk);
  for (u32 j = 0; j < shape.chunk; ++j) {
    p[j] = hidden;
    if (!sees(j))
      continue;
    any = true;
    f32 s = scoreOf(shape, query, keys + (first + j) * rowBytes);
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
  partial.o = weigh(shape, p, values + first * rowBytes, sees);
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

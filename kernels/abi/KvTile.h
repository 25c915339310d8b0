/// \file
/// What a KV cache keeps keys and values as, and what that takes in a page: the
/// one thing that the compiler, the runtime and the kernels must agree about.
/// How a tile is filled is the kernels' (kernels/cpu/KvCache.h). Freestanding.
#ifndef LATHE_KERNELS_ABI_KVTILE_H
#define LATHE_KERNELS_ABI_KVTILE_H

#include "kernels/abi/StepArgs.h"

namespace lathe {

/// The dtype of a KV cache. Int8 has one f32 scale per token and KV head, in K
/// and in V (docs/numerics.md, "Rotary embedding and KV append").
enum class KvType { F16, BF16, F32, Int8 };

/// Bytes of a tile, the K or the V of one KV head in a page: pageTokens tokens
/// of `headDim` elements, headDim at most 2^32. Int8 pads a head to whole 16
/// elements and has the scales in the tile.
constexpr u64 kvTileBytes(KvType type, u64 headDim) {
  switch (type) {
  case KvType::F16:
  case KvType::BF16:
    return headDim * pageTokens * 2;
  case KvType::F32:
    return headDim * pageTokens * 4;
  case KvType::Int8:
    return (headDim + 15) / 16 * 16 * pageTokens + pageTokens * sizeof(f32);
  }
  return 0;
}

} // namespace lathe

#endif // LATHE_KERNELS_ABI_KVTILE_H

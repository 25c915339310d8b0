/// \file
/// The kernels that the micro-benchmark measures, per ISA layer.
#ifndef LATHE_TESTS_KERNELS_BENCH_BENCHLAYER_H
#define LATHE_TESTS_KERNELS_BENCH_BENCHLAYER_H

#include "kernels/abi/KvTile.h"
#include "kernels/formats/FormatId.h"

namespace lathe::bench {

/// A gemm [rows, k] x [n, k] with an identity epilogue.
struct GemmBench {
  const char *name;
  kernels::Format format;
  i64 n, k;
  KernelFunction function;
};

/// Attention of SmolLM2's shape: 9 query heads on 3 of 64. `name` is empty for
/// the default cache, f16, else _ and the cache's dtype.
struct AttentionBench {
  const char *name;
  KvType type;
  i64 heads, kvHeads, headDim;
  KernelFunction function;
};

/// The QK preparation and KV append before it, 32 rotated pairs a head.
struct RopeBench {
  const char *name;
  KvType type;
  i64 heads, kvHeads, headDim, pairs;
  KernelFunction function;
};

/// An RMS norm of [rows, k] with a weight, stored as activation blocks.
struct RowwiseBench {
  i64 k;
  KernelFunction function;
};

/// Rows of a table [vocab, k].
struct EmbedBench {
  kernels::Format format;
  i64 vocab, k;
  KernelFunction function;
};

/// The largest of n logits from a coarse head.
struct PickBench {
  i64 n, k;
  KernelFunction function;
};

struct BenchLayer {
  const char *name;
  const GemmBench *gemms;
  u32 gemmCount;
  const AttentionBench *attentions;
  u32 attentionCount;
  const RopeBench *ropes;
  u32 ropeCount;
  RowwiseBench rowwise;
  EmbedBench embed;
  PickBench pick;
};

} // namespace lathe::bench

#endif // LATHE_TESTS_KERNELS_BENCH_BENCHLAYER_H

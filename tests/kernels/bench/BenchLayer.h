/// \file
/// The kernels that the micro-benchmark measures, per ISA layer.
#ifndef LATHE_TESTS_KERNELS_BENCH_BENCHLAYER_H
#define LATHE_TESTS_KERNELS_BENCH_BENCHLAYER_H

#include "kernels/abi/StepArgs.h"
#include "kernels/formats/FormatId.h"

namespace lathe::bench {

/// A gemm [rows, k] x [n, k] with an identity epilogue.
struct GemmBench {
  const char *name;
  kernels::Format format;
  i64 n, k;
  KernelFunction function;
};

/// Attention of SmolLM2's shape: 9 query heads on 3 of 64, f16 cache.
struct AttentionBench {
  i64 heads, kvHeads, headDim;
  KernelFunction function;
};

struct BenchLayer {
  const char *name;
  const GemmBench *gemms;
  u32 gemmCount;
  AttentionBench attention;
};

} // namespace lathe::bench

#endif // LATHE_TESTS_KERNELS_BENCH_BENCHLAYER_H

/// \file
/// What a layer library (Layer.cpp, compiled once per ISA layer) tells the
/// tests about its kernels.
///
/// How to add a case: write its structure in a list of LayerGemm.cpp,
/// LayerRows.cpp, LayerAttention.cpp or LayerPick.cpp, as codegen would print
/// it, and name it in the table at the end of that file. The tests run every
/// row of the tables on every layer, for many row counts and thread splits,
/// against tests/kernels/contract. A new region needs its scalar twin in
/// `Region`.
#ifndef LATHE_TESTS_KERNELS_CPU_CASES_H
#define LATHE_TESTS_KERNELS_CPU_CASES_H

#include "kernels/abi/KvTile.h"
#include "kernels/cpu/Tags.h"
#include "kernels/formats/FormatId.h"

namespace lathe::tests {

using kernels::Format;
using kernels::Side;
using kernels::Store;

/// The element regions of the cases; evaluated in scalars by regionOf().
enum class Region {
  Identity,
  /// value + element side.
  Residual,
  /// value * column side.
  Weight,
  /// fma(value, row, column) - element.
  AllSides,
  /// silu(first) * second.
  SwiGlu,
  Gelu,
  Exp,
  Tanh,
  /// maximumf(minimumf(value, column), -column).
  Clamp,
  /// -abs(value) / sqrt(value * value + 0.5) + -0.
  Misc,
};

struct SegmentCase {
  i64 n;
  Format format;
  bool paired;
  Store store;
  u32 sideCount;
  Side sides[3];
  Region region;
};

struct GemmCase {
  const char *name;
  i64 k;
  Store input;
  u32 segmentCount;
  SegmentCase segments[3];
  KernelFunction function;
};

struct StageCase {
  bool rms;
  f32 epsilon;
  u32 sideCount;
  Side sides[3];
  u32 storeCount;
  Store stores[2];
  Region region;
};

struct RowwiseCase {
  const char *name;
  i64 k;
  u32 stageCount;
  StageCase stages[3];
  KernelFunction function;
};

struct EmbedCase {
  const char *name;
  i64 vocab, k;
  Format format;
  KernelFunction function;
};

/// A pick from a Q8_0 head of n rows.
struct PickCase {
  i64 n, k;
  KernelFunction function;
};

/// Attention and its rope_append over the same heads.
struct AttentionCase {
  const char *name;
  i64 heads, kvHeads, headDim, ropePairs, window;
  bool ropeHalves, qkNorm;
  KvType type;
  f32 epsilon, qScale, softcap;
  Store store;
  KernelFunction rope;
  KernelFunction ownedRope;
  KernelFunction attention;
};

/// A table.
template <typename T> struct CaseList {
  const T *cases;
  u32 count;
  const T *begin() const { return cases; }
  const T *end() const { return cases + count; }
};

/// The kernels of one ISA layer.
struct Layer {
  const char *name;
  /// It multiplies BF16 weights with activations rounded to bf16.
  bool brainDots;
  const CaseList<GemmCase> &gemms;
  const CaseList<RowwiseCase> &rowwise;
  const CaseList<EmbedCase> &embeds;
  const CaseList<AttentionCase> &attentions;
  const CaseList<PickCase> &picks;
  void (*barrier)(const StepArgs *args, u32 threads);
  /// MXCSR inside and after a StepScope.
  void (*stepScope)(u32 *inside, u32 *after);
};

} // namespace lathe::tests

#endif // LATHE_TESTS_KERNELS_CPU_CASES_H

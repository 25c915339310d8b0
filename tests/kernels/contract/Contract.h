/// \file
/// docs/numerics.md in scalar C++: the oracle that every kernel, on every ISA
/// layer, equals bit for bit. Written from that page alone, one value at a
/// time, in the order of the page; slow on purpose. It shares nothing with
/// kernels/cpu or codegen, and decodes weights from the rows of a GGUF file by
/// itself (only the names of formats come from kernels/formats).
///
/// All arrays are the caller's, plain and unpadded. Functions are pure and may
/// be called from any thread; the caller's rounding mode is nearest-even with
/// denormals kept, as it is at the start of every program. Arguments are
/// trusted: these are tests.
///
/// How to add a format: decode it in Weights.cpp, add its line of the gemm
/// table in Gemm.cpp, a hand-made block and its golden values to the tests.
#ifndef LATHE_TESTS_KERNELS_CONTRACT_CONTRACT_H
#define LATHE_TESTS_KERNELS_CONTRACT_CONTRACT_H

#include "kernels/abi/KvTile.h"
#include "kernels/formats/Format.h"

#include <optional>
#include <vector>

namespace lathe::contract {

using kernels::Format;

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

/// True if both have the same bits, or both are NaN: which NaN an operation
/// gives depends on the order in which a compiler put its operands.
bool sameF32(f32 a, f32 b);

/// Index of the first of `count` values that differ (sameF32), or `count`.
u64 firstDifference(const f32 *a, const f32 *b, u64 count);

//===----------------------------------------------------------------------===//
// "Floating point" and "Element regions"
//===----------------------------------------------------------------------===//

/// e^x by the polynomial of numerics.md.
f32 expf(f32 x);

/// tanh(x) from expf: an absolute, not a relative approximation near 0.
f32 tanhf(f32 x);

/// x / (1 + exp(-x)).
f32 silu(f32 x);

/// GELU in its tanh form.
f32 gelu(f32 x);

/// Sixteen lanes into one: i + 8, then i + 4, i + 2, i + 1.
f32 tree16(const f32 *lanes);

/// The lane sum of `count` values.
f32 laneSum(const f32 *values, u64 count);

//===----------------------------------------------------------------------===//
// "Activation blocks"
//===----------------------------------------------------------------------===//

/// 32 values to one block.
ActivationBlock quantizeBlock(const f32 *values);

/// A row of `k` values to ceil(k / 32) blocks, the last padded with zeros.
void quantizeRow(const f32 *row, u64 k, ActivationBlock *blocks);

//===----------------------------------------------------------------------===//
// "gemm"
//===----------------------------------------------------------------------===//

/// One output of a gemm before its epilogue: a weight row of a quantized
/// format, `k` elements in GGUF order, times k / 32 activation blocks. `k` is a
/// multiple of the format's block.
f32 gemmRow(Format format, const u8 *weightRow, u64 k,
            const ActivationBlock *activation);

/// The same for a weight row of F32, F16 or BF16 and f32 activations `[k]`.
f32 gemmRow(Format format, const u8 *weightRow, u64 k, const f32 *activation);

/// The same for BF16 weights where the activations are rounded to bf16.
f32 brainRow(const u8 *weightRow, u64 k, const f32 *activation);

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

/// The values of `k` elements of a weight row of any format:
/// (d * sc) * q - (dmin * mn), each operation rounded once, as ggml does it.
void dequantizeRow(Format format, const u8 *weightRow, u64 k, f32 *out);

/// Row `token` of a matrix of rows of `k` elements, to `out[k]`.
void embedRow(Format format, const u8 *matrix, u64 k, u32 token, f32 *out);

/// Bytes of `k` elements of a row, k a multiple of the format's block.
u64 weightRowBytes(Format format, u64 k);

//===----------------------------------------------------------------------===//
// "rowwise", "Rotary embedding and KV append"
//===----------------------------------------------------------------------===//

/// The factor r of an RMS norm: the normed value is x_i * r.
f32 rmsScale(const f32 *row, u64 k, f32 epsilon);

/// Rotates one pair in place by the table entry (cos, sin).
void ropePair(f32 &x0, f32 &x1, f32 cos, f32 sin);

/// Which values of a head make pair i of P: (2i, 2i + 1), or (i, i + P).
enum class RopeStyle { Adjacent, Halves };

/// How a query or key head is made ready.
struct HeadRecipe {
  u64 headDim = 0;
  /// Rotated pairs P, 2P <= headDim; the values behind them pass through.
  u64 ropePairs = 0;
  RopeStyle style = RopeStyle::Halves;
  /// Weights of the QK-norm `[headDim]`, or null if there is none.
  const f32 *norm = nullptr;
  f32 epsilon = 0;
  /// A query's q_scale; absent for a key.
  std::optional<f32> scale;
};

/// Norm, rotation, scale of one head `[headDim]` in place. `table` is the row
/// of the position, `[ropePairs][2]` of (cos, sin); null without pairs.
void prepareHead(const HeadRecipe &recipe, const f32 *table, f32 *head);

/// Bytes of a row, the key or value of one token and KV head: `headDim`
/// elements in the cache's type; of int8 behind an f32 scale.
u64 kvRowBytes(KvType type, u64 headDim);

/// The butterfly over each run of 2^k values, 2^k the largest power of two in
/// `headDim`; returns 2^k.
u64 butterfly(f32 *values, u64 headDim);

/// Converts a row of `headDim` values to the cache's type; of int8 keys what
/// the butterfly makes of them.
void toCache(KvType type, const f32 *values, u64 headDim, u8 *row);

/// Element `index` of a row of floats; exact. Of int8: its q.
f32 fromCache(KvType type, const u8 *row, u64 index);

/// The scale of a row of int8.
f32 scaleOf(const u8 *row);

/// The value of an IEEE binary16 pattern; exact.
f32 f16ToF32(u16 half);

/// The nearest binary16 pattern, ties to even; a NaN gives a quiet NaN.
u16 f32ToF16(f32 value);

/// The value of a bfloat16 pattern; exact.
f32 bf16ToF32(u16 brain);

/// The nearest bfloat16 pattern, ties to even; a NaN gives a quiet NaN.
u16 f32ToBf16(f32 value);

//===----------------------------------------------------------------------===//
// "Attention"
//===----------------------------------------------------------------------===//

/// The constants of an attention layer.
struct AttentionShape {
  u64 headDim = 0;
  KvType type = KvType::F16;
  /// Keys per chunk, C.
  u32 chunk = 128;
  /// W: a row at t sees t - W < p <= t; 0: all p <= t.
  u32 window = 0;
  /// c > 0: scores become c * tanh(s / c); 0: off.
  f32 softcap = 0;
};

/// What a row saw of some chunks.
struct AttentionPartial {
  f32 m = 0;
  f32 l = 0;
  std::vector<f32> o;
};

/// One chunk of keys for one (row, query head): `query[headDim]` is rotated and
/// scaled, `keys` and `values` are the rows of its KV head in the cache's type,
/// indexed from position 0. Only visible keys are read. Nothing
/// if the row at `position` sees no key of the chunk.
std::optional<AttentionPartial> attentionChunk(const AttentionShape &shape,
                                               const f32 *query, const u8 *keys,
                                               const u8 *values, u32 position,
                                               u32 chunk);

/// left becomes left followed by right, the chunks after it.
void combine(AttentionPartial &left, const AttentionPartial &right);

/// The attention of one (row, query head), to `out[headDim]`; arguments as for
/// attentionChunk.
void attentionRow(const AttentionShape &shape, const f32 *query, const u8 *keys,
                  const u8 *values, u32 position, f32 *out);

} // namespace lathe::contract

#endif // LATHE_TESTS_KERNELS_CONTRACT_CONTRACT_H

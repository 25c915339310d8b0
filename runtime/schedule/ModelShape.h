/// \file
/// What a model's sizes alone say about the memory it takes: no weights, no
/// code (docs/memory.md).
#ifndef LATHE_RUNTIME_SCHEDULE_MODELSHAPE_H
#define LATHE_RUNTIME_SCHEDULE_MODELSHAPE_H

#include "runtime/device/StepProgram.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// The layers of a model that see equally far.
struct LayerKind {
  u32 layers = 0;
  u32 window = 0; ///< As KvGroupInfo::window; 0: all earlier tokens.
  u32 heads = 0;  ///< Of queries.
  u32 kvHeads = 0;
  u32 headDim = 0;
};

/// A decoder-only transformer with gated feed-forward layers.
struct ModelShape {
  std::string name = {};
  std::string architecture = {}; ///< "llama"
  u32 layers = 0;
  u32 vocab = 0, hidden = 0, feedForward = 0;
  u32 context = 0; ///< Positions that it was trained for.
  /// Of all layers; empty if there is no KV cache.
  std::vector<LayerKind> kinds = {};
  u64 parameters = 0;
  /// Those of a table of which a token reads one row, not all: embeddings that
  /// are not the head's, too.
  u64 gatheredParameters = 0;
};

/// How many KV heads the query heads of a layer share.
enum class HeadSharing {
  AsIs,
  Mha, ///< None: each has its own (multi-head attention).
  Mqa, ///< All: there is one (multi-query attention).
};

/// Bytes of one head's key, or value, of one token in the cache; 0 if the dtype
/// is none of kvDtypes(). An int8 one carries an f32 scale.
u64 kvHeadBytes(std::string_view dtype, u32 headDim);

/// "f32", "f16", "bf16", "int8".
std::span<const std::string_view> kvDtypes();

/// Bytes that one token adds to the cache: 2 · layers · KV heads · head size ·
/// bytes of an element, of all layers together.
u64 kvBytesPerToken(const ModelShape &shape, std::string_view dtype,
                    HeadSharing sharing = HeadSharing::AsIs);

/// Bytes of the keys and values of `tokens` tokens; layers with a window keep
/// no more of them than it is long.
u64 kvBytesOf(const ModelShape &shape, std::string_view dtype, u64 tokens,
              HeadSharing sharing = HeadSharing::AsIs);

/// How precisely all of a model's weights are kept.
struct WeightPrecision {
  std::string_view name;   ///< "int4"
  std::string_view format; ///< Of Lathe, that comes closest: "Q4_0".
  u32 bits;                ///< Of a weight alone.
  f64 formatBits;          ///< With its share of the format's scales.
};

/// FP32, FP16, INT8 and INT4.
std::span<const WeightPrecision> weightPrecisions();

/// Bytes of `count` weights of so many bits, rounded up.
u64 bytesOfWeights(u64 count, f64 bits);

/// The least time in seconds that a token takes on a device that reads
/// `bandwidth` bytes per second, if it reads `bytes` of weights, keys and
/// values.
f64 secondsPerToken(u64 bytes, f64 bandwidth);

/// A program without code that takes as much memory as a compiled one would:
/// KV groups exactly; of the buffers those that are alive together in a layer.
/// `quantizesRows`: matrices are multiplied in int8, so their inputs are kept
/// in blocks of 32 int8.
StepProgram sketchProgram(const ModelShape &shape, std::string_view kvDtype,
                          bool quantizesRows);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_MODELSHAPE_H

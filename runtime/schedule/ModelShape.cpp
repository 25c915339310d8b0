#include "runtime/schedule/ModelShape.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lathe::runtime {
namespace {

constexpr std::array<std::string_view, 4> dtypes = {"f32", "f16", "bf16",
                                                    "int8"};

constexpr std::array<WeightPrecision, 4> precisions = {{
    {"fp32", "F32", 32, 32},
    {"fp16", "F16", 16, 16},
    {"int8", "Q8_0", 8, 8.5},
    {"int4", "Q4_0", 4, 4.5},
}};

/// Rows up to which each thread prepares the input of a matrix for itself.
constexpr u32 replicatedRows = 4;

/// K and V of one token in all layers of a kind.
u64 tokenBytes(const LayerKind &kind, std::string_view dtype,
               HeadSharing sharing) {
  u64 heads = sharing == HeadSharing::Mha   ? kind.heads
              : sharing == HeadSharing::Mqa ? 1
                                            : kind.kvHeads;
  return 2 * u64(kind.layers) * heads * kvHeadBytes(dtype, kind.headDim);
}

/// Bytes of a row of `count` inputs of a matrix.
u64 inputBytes(u64 count, bool quantized) {
  constexpr u64 block = 32, blockBytes = 44; // f32 scale, sums, 32 int8
  return quantized ? (count + block - 1) / block * blockBytes : count * 4;
}

} // namespace

std::span<const std::string_view> kvDtypes() { return dtypes; }

u64 kvHeadBytes(std::string_view dtype, u32 headDim) {
  if (dtype == "int8")
    return u64(headDim) + sizeof(f32);
  return u64(headDim) * (dtype == "f32"                      ? 4
                         : dtype == "f16" || dtype == "bf16" ? 2
                                                             : 0);
}

u64 kvBytesPerToken(const ModelShape &shape, std::string_view dtype,
                    HeadSharing sharing) {
  return kvBytesOf(shape, dtype, 1, sharing);
}

u64 kvBytesOf(const ModelShape &shape, std::string_view dtype, u64 tokens,
              HeadSharing sharing) {
  u64 sum = 0;
  for (const LayerKind &kind : shape.kinds)
    sum += tokenBytes(kind, dtype, sharing) *
           (kind.window ? std::min<u64>(kind.window, tokens) : tokens);
  return sum;
}

std::span<const WeightPrecision> weightPrecisions() { return precisions; }

u64 bytesOfWeights(u64 count, f64 bits) {
  return u64(std::ceil(f64(count) * bits / 8));
}

f64 secondsPerToken(u64 bytes, f64 bandwidth) { return f64(bytes) / bandwidth; }

StepProgram sketchProgram(const ModelShape &shape, std::string_view kvDtype,
                          bool quantizesRows) {
  StepProgram program;
  program.vocab = shape.vocab;
  program.hidden = shape.hidden;
  program.context = shape.context;
  program.attentionRowTile = 8;
  u64 queries = 0, keys = 0, partials = 0;
  for (const LayerKind &kind : shape.kinds) {
    program.groups.push_back(
        {.window = kind.window,
         .pageBytes = pageTokens * tokenBytes(kind, kvDtype, HeadSharing::AsIs),
         .kvHeads = kind.kvHeads});
    queries = std::max(queries, u64(kind.heads) * kind.headDim);
    keys = std::max(keys, u64(kind.kvHeads) * kind.headDim);
    partials = std::max(partials, u64(kind.heads) * (kind.headDim + 2) * 4);
  }
  // The residual stream; what a half of a block computes from it, in turns with
  // the input of the last matrix; k and v; the input of the first one.
  u64 wide = std::max<u64>(shape.hidden, queries);
  u64 input = inputBytes(wide, quantizesRows);
  program.slots = {
      {.rows = u64(shape.hidden) * 4},
      {.rows = wide * 4, .threads = replicatedRows * wide * 4},
      {.rows = std::max(wide * 4, inputBytes(shape.feedForward, quantizesRows)),
       .threads = replicatedRows * wide * 4},
      {.rows = 2 * keys * 4},
      {.rows = input,
       .threads = quantizesRows ? replicatedRows * input : 0,
       .constant = maxHeadRows * input},
      {.partials = partials},
  };
  return program;
}

} // namespace lathe::runtime

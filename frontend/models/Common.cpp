#include "frontend/models/Common.h"

#include <cmath>
#include <tuple>

using namespace lathe;
using namespace lathe::frontend;
using mlir::Value;
using runtime::ErrorKind;

namespace {

/// Dimensions far above any model's, so that products of them fit 64 bits.
constexpr uint32_t dimensionMax = 1u << 24;

/// More than ten times what models have. A small file must not ask for a large
/// graph or a large rotary table.
constexpr int64_t layersMax = 4096, headDimMax = 4096;

int64_t dimension(GraphBuilder &graph, const std::string &key, uint32_t value) {
  if (value >= 1 && value <= dimensionMax)
    return value;
  graph.fail({ErrorKind::InvalidInput,
              fmt::format("{}: key '{}' is {}; it must lie in 1 to {}",
                          graph.file().path(), key, value, dimensionMax)});
  return 1;
}

} // namespace

Transformer frontend::readTransformer(GraphBuilder &graph,
                                      const std::string &prefix) {
  Transformer model;
  model.prefix = prefix;
  auto read = [&](const std::string &name) {
    std::string key = prefix + "." + name;
    return dimension(graph, key, graph.u32(key));
  };
  auto readOr = [&](const std::string &name, int64_t fallback) {
    std::string key = prefix + "." + name;
    return dimension(graph, key,
                     graph.u32(key, static_cast<uint32_t>(fallback)));
  };
  model.layers = read("block_count");
  model.hidden = read("embedding_length");
  model.feedForward = read("feed_forward_length");
  model.heads = read("attention.head_count");
  model.kvHeads = readOr("attention.head_count_kv", model.heads);
  model.headDim = readOr("attention.key_length",
                         std::max<int64_t>(1, model.hidden / model.heads));
  model.epsilon = graph.f32(prefix + ".attention.layer_norm_rms_epsilon");
  for (auto [name, value, most] :
       {std::tuple("block_count", model.layers, layersMax),
        std::tuple("attention.key_length", model.headDim, headDimMax)})
    if (value > most)
      graph.fail({ErrorKind::Unsupported,
                  fmt::format("{}: '{}.{}' is {}; at most {} are supported",
                              graph.file().path(), prefix, name, value, most)});
  if (model.heads % model.kvHeads != 0)
    graph.fail({ErrorKind::InvalidInput,
                fmt::format("{}: {} query heads are no multiple of {} KV heads",
                            graph.file().path(), model.heads, model.kvHeads)});
  if (graph.u32(prefix + ".attention.value_length",
                static_cast<uint32_t>(model.headDim)) != model.headDim)
    graph.fail({ErrorKind::Unsupported,
                fmt::format("{}: heads of other size for values than for keys "
                            "are not supported",
                            graph.file().path())});
  if (!(model.epsilon >= 0) || !std::isfinite(model.epsilon))
    graph.fail({ErrorKind::InvalidInput,
                fmt::format("{}: key '{}.attention.layer_norm_rms_epsilon' is "
                            "not a positive number",
                            graph.file().path(), prefix)});
  if (const GgufTensor *embedding =
          graph.file().findTensor("token_embd.weight")) {
    if (embedding->rows() > uint64_t(1) << 31)
      graph.fail({ErrorKind::Unsupported,
                  fmt::format("{}: a vocabulary of {} tokens",
                              graph.file().path(), embedding->rows())});
    else
      model.vocab = static_cast<int64_t>(embedding->rows());
  }
  if (graph.failed())
    model.layers = 0;
  return model;
}

RopeSpec frontend::readRope(GraphBuilder &graph, const Transformer &model,
                            ir::RopeStyle style) {
  RopeSpec rope;
  rope.style = style;
  auto key = [&](const char *name) { return model.prefix + ".rope." + name; };
  uint32_t dims =
      graph.u32(key("dimension_count"), static_cast<uint32_t>(model.headDim));
  if (dims % 2 != 0 || dims > model.headDim)
    graph.fail({ErrorKind::InvalidInput,
                fmt::format("{}: key '{}' is {}; it must be even and at most "
                            "the head size, {}",
                            graph.file().path(), key("dimension_count"), dims,
                            model.headDim)});
  rope.pairs = dims / 2;
  rope.base = graph.f32(key("freq_base"), 10000.0f);
  rope.scaling = graph.string(key("scaling.type"), "none");
  // Older files give only a linear factor.
  float legacy = graph.f32(key("scale_linear"), 1.0f);
  rope.factor = graph.f32(key("scaling.factor"), legacy);
  if (rope.factor == 0) // "not set", as converters write it
    rope.factor = 1;
  if (!graph.file().has(key("scaling.type")) && rope.factor != 1)
    rope.scaling = "linear";
  if (rope.scaling == "yarn") {
    rope.originalContext =
        graph.u32(key("scaling.original_context_length"),
                  graph.u32(model.prefix + ".context_length"));
    rope.betaFast = graph.f32(key("scaling.yarn_beta_fast"), 32.0f);
    rope.betaSlow = graph.f32(key("scaling.yarn_beta_slow"), 1.0f);
    rope.extrapolation = graph.f32(key("scaling.yarn_ext_factor"), 1.0f);
  } else if (rope.scaling != "none" && rope.scaling != "linear") {
    graph.fail({ErrorKind::Unsupported,
                fmt::format("{}: RoPE scaling '{}' is not supported; known are "
                            "none, linear and yarn",
                            graph.file().path(), rope.scaling)});
  }
  rope.attentionFactor = graph.f32(key("scaling.attn_factor"), 1.0f);
  if (!(rope.base > 0) || !(rope.factor > 0))
    graph.fail({ErrorKind::InvalidInput,
                fmt::format("{}: RoPE base {} and factor {} must be positive",
                            graph.file().path(), rope.base, rope.factor)});
  if (graph.hasTensor("rope_freqs.weight"))
    rope.divisors = "rope_freqs.weight";
  return rope;
}

AttentionSpec frontend::attentionOf(const Transformer &model) {
  AttentionSpec spec;
  spec.heads = model.heads;
  spec.kvHeads = model.kvHeads;
  spec.headDim = model.headDim;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(model.headDim));
  spec.epsilon = model.epsilon;
  return spec;
}

std::string frontend::blockOf(int64_t layer) {
  return "blk." + std::to_string(layer) + ".";
}

Value frontend::attentionHalf(GraphBuilder &graph, const Transformer &model,
                              const std::string &block, Value x,
                              const AttentionSpec &spec) {
  graph.at(block + "attn");
  Value n = graph.rmsNorm(x, block + "attn_norm.weight", model.epsilon);
  Value q = graph.linear(n, block + "attn_q", model.queryColumns());
  Value k = graph.linear(n, block + "attn_k", model.keyColumns());
  Value v = graph.linear(n, block + "attn_v", model.keyColumns());
  Value mixed = graph.attention(q, k, v, spec);
  return graph.linear(mixed, block + "attn_output", model.hidden);
}

Value frontend::feedForwardHalf(GraphBuilder &graph, const Transformer &model,
                                const std::string &block, Value x,
                                Activation activation) {
  graph.at(block + "ffn");
  Value n = graph.rmsNorm(x, block + "ffn_norm.weight", model.epsilon);
  Value gate = graph.linear(n, block + "ffn_gate", model.feedForward);
  Value up = graph.linear(n, block + "ffn_up", model.feedForward);
  Value h = graph.mul((graph.*activation)(gate), up);
  return graph.linear(h, block + "ffn_down", model.hidden);
}

Value frontend::headLogits(GraphBuilder &graph, const Transformer &model,
                           Value x) {
  graph.at("head");
  Value hidden = graph.startHead(x);
  Value n = graph.rmsNorm(hidden, "output_norm.weight", model.epsilon);
  bool tied = !graph.hasTensor("output.weight");
  return graph.linear(n, tied ? "token_embd" : "output", model.vocab);
}

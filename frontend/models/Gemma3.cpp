/// \file
/// Gemma 3, text: scaled embedding, norms before and after both halves of a
/// block and over each query and key head, GELU, and layers of which most see
/// only a window and rotate by another base (Gemma Team, arXiv 2503.19786,
/// section 2).
#include "frontend/models/Common.h"
#include "frontend/models/Models.h"

#include <cmath>

using namespace lathe::frontend;
using lathe::runtime::ErrorKind;
using mlir::Value;

namespace {

/// Whether each layer sees only a window. Files say it layer by layer, or say
/// that each Nth layer sees everything (none if N is 0), or nothing: each
/// sixth.
std::vector<bool> windowedLayers(GraphBuilder &graph,
                                 const Transformer &model) {
  constexpr std::string_view key = "gemma3.attention.sliding_window_pattern";
  std::vector<bool> windowed(static_cast<size_t>(model.layers));
  const GgufValue *value = graph.file().find(key);
  if (value && value->type == GgufType::Array) {
    auto flags = graph.file().getI32Array(key);
    if (!flags)
      graph.fail(flags.error());
    else if (flags->size() != windowed.size())
      graph.fail(
          {ErrorKind::InvalidInput,
           fmt::format("{}: key '{}' has {} entries for {} layers",
                       graph.file().path(), key, flags->size(), model.layers)});
    else
      for (size_t layer = 0; layer < windowed.size(); ++layer)
        windowed[layer] = (*flags)[layer] != 0;
    return windowed;
  }
  size_t every = graph.u32(key, 6);
  for (size_t layer = 0; layer < windowed.size(); ++layer)
    windowed[layer] = every == 0 || layer % every != every - 1;
  return windowed;
}

} // namespace

void lathe::frontend::buildGemma3(GraphBuilder &graph) {
  Transformer model = readTransformer(graph, "gemma3");
  AttentionSpec global = attentionOf(model);
  // The 27B model scales by hidden/heads, which is not its head size.
  int64_t columnsPerHead = model.hidden / model.heads;
  if (model.layers == 62)
    global.scale = 1.0f / std::sqrt(static_cast<float>(columnsPerHead));
  global.rope = readRope(graph, model, lathe::ir::RopeStyle::Halves);
  if (global.rope.scaling == "yarn")
    graph.fail({ErrorKind::Unsupported,
                graph.file().path() +
                    ": RoPE scaling 'yarn' is not supported for gemma3"});

  global.softcap = graph.f32("gemma3.attn_logit_softcapping", 0.0f);

  // Window layers reach no further than they were trained for: no scaling.
  AttentionSpec local = global;
  local.window = graph.u32("gemma3.attention.sliding_window", 0);
  local.rope.base = graph.f32("gemma3.rope.freq_base_swa", 10000.0f);
  local.rope.scaling = "none";
  local.rope.factor = 1;
  std::vector<bool> windowed(static_cast<size_t>(model.layers));
  if (local.window > 0)
    windowed = windowedLayers(graph, model);
  float finalCap = graph.f32("gemma3.final_logit_softcapping", 0.0f);

  Value x = graph.embed("token_embd.weight", model.hidden);
  x = graph.scale(x, std::sqrt(static_cast<float>(model.hidden)));
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    std::string block = blockOf(layer);
    AttentionSpec attention =
        windowed[static_cast<size_t>(layer)] ? local : global;
    attention.queryNorm = block + "attn_q_norm.weight";
    attention.keyNorm = block + "attn_k_norm.weight";
    Value h = attentionHalf(graph, model, block, x, attention);
    x = graph.add(x, graph.rmsNorm(h, block + "post_attention_norm.weight",
                                   model.epsilon));
    h = feedForwardHalf(graph, model, block, x, &GraphBuilder::gelu);
    x = graph.add(
        x, graph.rmsNorm(h, block + "post_ffw_norm.weight", model.epsilon));
  }
  Value logits = headLogits(graph, model, x);
  if (finalCap != 0)
    logits = graph.softcap(logits, finalCap);
  graph.endHead(logits);
}

/// \file
/// Qwen 3, dense: like qwen2 with a norm over each query and key head instead
/// of biases, and a head size of its own (Yang et al., arXiv 2505.09388,
/// section 2).
#include "frontend/models/Common.h"
#include "frontend/models/Models.h"

using namespace lathe::frontend;
using mlir::Value;

void lathe::frontend::buildQwen3(GraphBuilder &graph) {
  Transformer model = readTransformer(graph, "qwen3");
  AttentionSpec attention = attentionOf(model);
  attention.rope = readRope(graph, model, lathe::ir::RopeStyle::Halves);

  Value x = graph.embed("token_embd.weight", model.hidden);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    std::string block = blockOf(layer);
    attention.queryNorm = block + "attn_q_norm.weight";
    attention.keyNorm = block + "attn_k_norm.weight";
    x = graph.add(x, attentionHalf(graph, model, block, x, attention));
    x = graph.add(x,
                  feedForwardHalf(graph, model, block, x, &GraphBuilder::silu));
  }
  graph.endHead(headLogits(graph, model, x));
}

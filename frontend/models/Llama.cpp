/// \file
/// Llama 2 and 3, SmolLM2, TinyLlama and whatever else names itself "llama":
/// pre-norm blocks of grouped-query attention with rotary embedding and a
/// SwiGLU feed-forward (Touvron et al., arXiv 2307.09288, section 2.2).
#include "frontend/models/Common.h"
#include "frontend/models/Models.h"

using namespace lathe::frontend;
using mlir::Value;

void lathe::frontend::buildLlama(GraphBuilder &graph) {
  Transformer model = readTransformer(graph, "llama");
  AttentionSpec attention = attentionOf(graph, model);
  // The converter permutes q and k so that pairs lie side by side.
  attention.rope = readRope(graph, model, lathe::ir::RopeStyle::Adjacent);

  Value x = graph.embed("token_embd.weight", model.hidden);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    std::string block = "blk." + std::to_string(layer) + ".";
    graph.at(block + "attn");
    Value n = graph.rmsNorm(x, block + "attn_norm.weight", model.epsilon);
    Value q = graph.linear(n, block + "attn_q", model.queryColumns());
    Value k = graph.linear(n, block + "attn_k", model.keyColumns());
    Value v = graph.linear(n, block + "attn_v", model.keyColumns());
    Value mixed = graph.attention(q, k, v, attention);
    x = graph.add(x, graph.linear(mixed, block + "attn_output", model.hidden));

    graph.at(block + "ffn");
    n = graph.rmsNorm(x, block + "ffn_norm.weight", model.epsilon);
    Value gate = graph.linear(n, block + "ffn_gate", model.feedForward);
    Value up = graph.linear(n, block + "ffn_up", model.feedForward);
    Value h = graph.mul(graph.silu(gate), up);
    x = graph.add(x, graph.linear(h, block + "ffn_down", model.hidden));
  }
  graph.at("head");
  Value hidden = graph.startHead(x);
  Value n = graph.rmsNorm(hidden, "output_norm.weight", model.epsilon);
  graph.endHead(graph.linear(n, outputMatrix(graph), model.vocab));
}

/// \file
/// Qwen 2 and 2.5: like llama, with biases on queries, keys and values, and
/// rotary pairs that lie half a head apart (Yang et al., arXiv 2407.10671,
/// section 2.2).
#include "frontend/models/Common.h"
#include "frontend/models/Models.h"

using namespace lathe::frontend;
using mlir::Value;

void lathe::frontend::buildQwen2(GraphBuilder &graph) {
  Transformer model = readTransformer(graph, "qwen2");
  AttentionSpec attention = attentionOf(graph, model);
  attention.rope = readRope(graph, model, lathe::ir::RopeStyle::Halves);

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

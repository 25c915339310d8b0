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
  AttentionSpec attention = attentionOf(model);
  attention.rope = readRope(graph, model, lathe::ir::RopeStyle::Halves);

  Value x = graph.embed("token_embd.weight", model.hidden);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    std::string block = blockOf(layer);
    x = graph.add(x, attentionHalf(graph, model, block, x, attention));
    x = graph.add(x,
                  feedForwardHalf(graph, model, block, x, &GraphBuilder::silu));
  }
  graph.endHead(headLogits(graph, model, x));
}

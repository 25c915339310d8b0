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
  AttentionSpec attention = attentionOf(model);
  // The converter permutes q and k so that pairs lie side by side.
  attention.rope = readRope(graph, model, lathe::ir::RopeStyle::Adjacent);

  Value x = graph.embed("token_embd.weight", model.hidden);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    std::string block = blockOf(layer);
    x = graph.add(x, attentionHalf(graph, model, block, x, attention));
    x = graph.add(x,
                  feedForwardHalf(graph, model, block, x, &GraphBuilder::silu));
  }
  graph.endHead(headLogits(graph, model, x));
}

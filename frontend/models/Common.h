/// \file
/// What decoder-only transformers have in common: the hyper-parameters that
/// GGUF files name alike.
#ifndef LATHE_FRONTEND_MODELS_COMMON_H
#define LATHE_FRONTEND_MODELS_COMMON_H

#include "frontend/models/GraphBuilder.h"

#include <string>

namespace lathe::frontend {

/// Hyper-parameters, all positive once read without error; after one there are
/// no layers to build.
struct Transformer {
  std::string prefix; ///< Of the keys: "llama".
  int64_t layers = 1, hidden = 1, feedForward = 1, vocab = 1;
  int64_t heads = 1, kvHeads = 1, headDim = 1;
  float epsilon = 0;

  int64_t queryColumns() const { return heads * headDim; }
  int64_t keyColumns() const { return kvHeads * headDim; }
};

/// Reads `<prefix>.block_count`, `.embedding_length`, `.feed_forward_length`,
/// `.attention.head_count`, `.head_count_kv`, `.key_length`,
/// `.layer_norm_rms_epsilon`; the vocabulary is the rows of token_embd.
Transformer readTransformer(GraphBuilder &graph, const std::string &prefix);

/// Reads `<prefix>.rope.*`: dimension count, base, scaling (none, linear, yarn)
/// and the llama-3 divisors in tensor rope_freqs.
RopeSpec readRope(GraphBuilder &graph, const Transformer &model,
                  ir::RopeStyle style);

/// Full causal attention scaled by 1/√headDim, without rotary embedding.
AttentionSpec attentionOf(GraphBuilder &graph, const Transformer &model);

/// The name of the output matrix: "output", or "token_embd" if they are tied.
std::string outputMatrix(GraphBuilder &graph);

} // namespace lathe::frontend

#endif // LATHE_FRONTEND_MODELS_COMMON_H

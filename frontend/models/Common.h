/// \file
/// What decoder-only transformers have in common: the hyper-parameters and
/// tensors that GGUF files name alike, and the parts of a block.
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
AttentionSpec attentionOf(const Transformer &model);

/// What the names of a layer's tensors begin with: "blk.3.".
std::string blockOf(int64_t layer);

/// The attention half of a block, norm to output projection, without the
/// residual: x [T, hidden] through `attn_norm`, `attn_q`, `attn_k`, `attn_v`
/// and `attn_output` of `block`.
mlir::Value attentionHalf(GraphBuilder &graph, const Transformer &model,
                          const std::string &block, mlir::Value x,
                          const AttentionSpec &spec);

/// GraphBuilder::silu or gelu.
using Activation = mlir::Value (GraphBuilder::*)(mlir::Value);

/// The feed-forward half of a block, without the residual: x [T, hidden]
/// through `ffn_norm`, activation(`ffn_gate`) · `ffn_up` and `ffn_down` of
/// `block` (Shazeer, arXiv 2002.05202).
mlir::Value feedForwardHalf(GraphBuilder &graph, const Transformer &model,
                            const std::string &block, mlir::Value x,
                            Activation activation);

/// Ends @body with the residual stream x, starts @head and gives its logits
/// [R, vocab]: `output_norm`, then `output`, or `token_embd` if they are tied.
mlir::Value headLogits(GraphBuilder &graph, const Transformer &model,
                       mlir::Value x);

} // namespace lathe::frontend

#endif // LATHE_FRONTEND_MODELS_COMMON_H

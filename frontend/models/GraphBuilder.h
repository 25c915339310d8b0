/// \file
/// What model files are written with: the graph dialect, op by op, over the
/// tensors of a GGUF file.
#ifndef LATHE_FRONTEND_MODELS_GRAPHBUILDER_H
#define LATHE_FRONTEND_MODELS_GRAPHBUILDER_H

#include "frontend/gguf/GgufFile.h"
#include "ir/lathe/Lathe.h"
#include "runtime/support/Result.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"

#include <optional>
#include <string>
#include <string_view>

namespace lathe::frontend {

/// A rotary embedding: which pairs, and by which angles.
struct RopeSpec {
  ir::RopeStyle style = ir::RopeStyle::Adjacent;
  int64_t pairs = 0; ///< Rotated pairs of a head; 0: no rotation.
  double base = 10000;
  /// `linear`: every frequency divided by `factor`. `yarn`: Peng et al.,
  /// arXiv 2309.00071, section 3.
  std::string scaling = "none";
  double factor = 1;
  double originalContext = 0; ///< yarn.
  double betaFast = 32, betaSlow = 1, extrapolation = 1;
  /// Multiplies cos and sin; yarn's own magnitude comes on top.
  double attentionFactor = 1;
  /// A tensor of one divisor per pair (llama-3), or empty.
  std::string divisors;
};

/// One attention layer's shape.
struct AttentionSpec {
  int64_t heads = 0, kvHeads = 0, headDim = 0;
  float scale = 0;
  int64_t window = 0; ///< 0: full causal attention.
  float softcap = 0;  ///< 0: none.
  RopeSpec rope;
  /// Tensors of the norms over each query and key head, or empty.
  std::string queryNorm, keyNorm;
  float epsilon = 0;
};

/// Builds one module. The first thing that is wrong with the model (a missing
/// tensor, a wrong shape) is kept as its error, after which values are dummies:
/// model files need no error handling of their own and end in finish().
class GraphBuilder {
public:
  /// `positions`: those that the engine shall cover. `readTensors`: check the
  /// blocks of each tensor.
  GraphBuilder(mlir::MLIRContext &context, const GgufFile &file,
               int64_t positions, bool readTensors);

  const GgufFile &file() const { return gguf; }
  int64_t positions() const { return context; }

  /// A hyper-parameter; the error is kept.
  uint32_t u32(std::string_view key);
  uint32_t u32(std::string_view key, uint32_t fallback);
  float f32(std::string_view key);
  float f32(std::string_view key, float fallback);
  std::string string(std::string_view key, std::string_view fallback);
  bool hasTensor(std::string_view name) const {
    return gguf.findTensor(name) != nullptr;
  }

  /// The token ids of the rows.
  mlir::Value tokens() const { return tokenIds; }

  /// Rows of matrix `tensor` [vocab, hidden] by the step's token ids.
  mlir::Value embed(const std::string &tensor, int64_t hidden);

  /// x · Wᵀ with the matrix `name`.weight [n, k of x], plus `name`.bias [n] if
  /// the file has one.
  mlir::Value linear(mlir::Value x, const std::string &name, int64_t n);

  mlir::Value rmsNorm(mlir::Value x, const std::string &tensor, float epsilon);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value silu(mlir::Value x);
  mlir::Value gelu(mlir::Value x);
  mlir::Value scale(mlir::Value x, float factor);
  mlir::Value softcap(mlir::Value x, float cap);

  /// Attention of q [T, heads·d] over k and v [T, kvHeads·d], decomposed:
  /// [T, heads·d].
  mlir::Value attention(mlir::Value q, mlir::Value k, mlir::Value v,
                        const AttentionSpec &spec);

  /// Names the ops that follow in messages and dumps: "blk.3.attn".
  void at(const std::string &place);

  /// Ends @body with the hidden rows and starts @head; gives head's input.
  mlir::Value startHead(mlir::Value hidden);

  /// Ends @head with the logits, [R, vocab].
  void endHead(mlir::Value logits);

  /// Keeps an error, if none is kept yet.
  void fail(runtime::Error error);
  bool failed() const { return error.has_value(); }

  /// The module, or the first error.
  runtime::Result<mlir::OwningOpRef<mlir::ModuleOp>>
  finish(ir::ModelAttr model);

private:
  template <typename T> T keep(runtime::Result<T> result) {
    if (result)
      return std::move(*result);
    fail(result.error());
    return T();
  }
  mlir::RankedTensorType rowsOf(llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value heads);
  mlir::Value heads(mlir::Value flat, int64_t count, int64_t headDim);
  mlir::Value prepare(mlir::Value heads, const std::string &norm,
                      const AttentionSpec &spec);
  /// The symbol of a matrix, declared on first use.
  mlir::FlatSymbolRefAttr matrix(const std::string &tensor, int64_t n,
                                 int64_t k);
  /// The symbol of a vector of n values, as f32.
  mlir::FlatSymbolRefAttr vector(const std::string &tensor, int64_t n);
  mlir::FlatSymbolRefAttr ropeTable(const RopeSpec &rope);
  mlir::FlatSymbolRefAttr declare(const std::string &symbol,
                                  mlir::RankedTensorType type,
                                  mlir::Attribute recipe, mlir::Location loc);
  /// The bytes of a tensor, which thereby counts as used.
  mlir::Attribute sourceOf(const GgufTensor &tensor);
  /// Keeps an error if the file has tensors that the model does not use: they
  /// belong to a variant that this architecture file does not know.
  void checkUse();

  const GgufFile &gguf;
  int64_t context;
  bool readTensors;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::OpBuilder builder;
  mlir::OpBuilder weightBuilder;
  mlir::func::FuncOp function;
  mlir::Value tokenIds, positionIds;
  mlir::Location loc;
  llvm::DenseSet<const GgufTensor *> used;
  std::optional<runtime::Error> error;
};

} // namespace lathe::frontend

#endif // LATHE_FRONTEND_MODELS_GRAPHBUILDER_H

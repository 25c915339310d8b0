/// \file
/// One function of the graph becomes one kernel.program: the state that the
/// steps of form-kernels share. Each group of members has a file of its own.
#ifndef LATHE_PASSES_FUNCTIONFORMER_H
#define LATHE_PASSES_FUNCTIONFORMER_H

#include "passes/KernelEmitter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace lathe::passes {

/// Values of one row of a tensor.
int64_t columnsOf(mlir::Value value);

/// Elementwise ops that move into one element region, with what they read.
struct Cluster {
  /// The values that the skeleton computes: one, or two of a pair.
  llvm::SmallVector<mlir::Value, 2> roots;
  /// Column vectors added to roots (null: none), before everything else.
  llvm::SmallVector<mlir::FlatSymbolRefAttr, 2> biases;
  /// A column vector that multiplies the root (the norm's weight), or null.
  mlir::FlatSymbolRefAttr columnScale;
  llvm::SmallVector<mlir::Operation *> ops;
  /// Materialized values that the ops read, indexed by (row, column).
  llvm::SetVector<mlir::Value> elements;
  /// What the region yields.
  mlir::Value tip;
};

/// Turns one function into one program.
class FunctionFormer {
public:
  FunctionFormer(mlir::func::FuncOp func, ProgramEmitter &emitter,
                 const ir::TargetInfo &target);

  /// Emits the launches of all ops in their order. Errors are at an op.
  mlir::LogicalResult run();

private:
  using WeightSymbols = llvm::SmallVector<mlir::FlatSymbolRefAttr, 2>;

  mlir::LogicalResult visit(mlir::Operation *op);

  // Clusters (FormClusters.cpp).

  /// The only reader of the tip, if it is elementwise.
  mlir::Operation *nextElementwise(const Cluster &cluster);
  /// Whether everything that `op` reads besides `tips` has a buffer already.
  bool readsOnly(mlir::Operation *op, mlir::ArrayRef<mlir::Value> tips);
  void absorb(Cluster &cluster, mlir::Operation *op,
              mlir::ArrayRef<mlir::Value> tips);
  void grow(Cluster &cluster);
  /// Builds the region of a cluster and lists its sides' kinds and buffers.
  void buildRegion(const Cluster &cluster, mlir::Region &region,
                   llvm::SmallVectorImpl<ir::Side> &sides,
                   llvm::SmallVectorImpl<mlir::Value> &sideBuffers);
  /// The single quantize_rows that reads `value`, if nothing else does.
  ir::QuantizeRowsOp onlyQuantized(mlir::Value value);

  // Embed and gemm (FormGemm.cpp).

  ir::WeightOp weightOf(mlir::Operation *op, mlir::FlatSymbolRefAttr symbol);
  ir::BlockType blockOf(mlir::Operation *op, mlir::FlatSymbolRefAttr symbol);
  mlir::LogicalResult formEmbed(ir::EmbedOp op);
  mlir::LogicalResult formMerged(ir::MergedLinearOp op);
  /// Two clusters whose tips meet in one elementwise op become one paired
  /// cluster, if their weights allow it.
  void pairUp(mlir::Operation *op, llvm::SmallVector<Cluster, 0> &clusters,
              llvm::SmallVectorImpl<WeightSymbols> &weights);
  /// A weight whose row groups alternate between two others'.
  mlir::FlatSymbolRefAttr
  interleave(mlir::Operation *op,
             mlir::ArrayRef<mlir::FlatSymbolRefAttr> sources);
  mlir::LogicalResult
  formGemm(mlir::Operation *op, mlir::Value input,
           mlir::ArrayRef<mlir::FlatSymbolRefAttr> weightSymbols,
           mlir::ArrayRef<mlir::FlatSymbolRefAttr> biases,
           mlir::ArrayRef<mlir::Value> results);

  // Rowwise kernels (FormRowwise.cpp).

  /// One stage of a rowwise kernel: what it computes and who reads it.
  struct RowStage {
    Cluster cluster;
    ir::RmsNormOp norm;
    /// The results that its q8 store serves; none: no such store.
    llvm::SmallVector<mlir::Value> quantized;
    /// Whether its value is read from memory as f32.
    bool storesF32 = false;
    /// The norm that goes on with its value, or null.
    ir::RmsNormOp next;
  };

  /// The stage that starts with `op`, a row norm, an elementwise op on `input`
  /// or a quantize_rows of it.
  mlir::FailureOr<RowStage> makeStage(mlir::Operation *op, mlir::Value input);
  mlir::LogicalResult formRowwise(mlir::Operation *first);

  // Attention over the KV cache (FormAttention.cpp).

  /// Heads as the attention wants them, traced back to a stored value.
  struct HeadSource {
    mlir::Value flat;
    ir::RopeOp rope;
    ir::RmsNormOp norm;
  };

  HeadSource traceHeads(mlir::Value heads);
  mlir::LogicalResult formAttention(ir::PagedAttentionOp op);

  // What is chosen where the fast path cannot be (SlowerPaths.cpp). Each of
  // these is a remark at the op's location; the texts name no layer, so that
  // those of all layers are alike.

  /// Ops that run as plain loops, one after the other.
  void remarkContracted(mlir::ArrayRef<mlir::Operation *> ops);
  /// An elementwise op or quantize_rows that no kernel has taken in.
  void remarkOwnKernel(mlir::Operation *op);
  /// A gemm that reads what an earlier one read.
  void remarkUnmerged(mlir::Operation *op, mlir::Value input);
  /// Whether two clusters that meet in `next` can share tiles; if not, says
  /// why.
  bool canPair(mlir::Operation *op, mlir::Operation *next,
               mlir::FlatSymbolRefAttr first, mlir::FlatSymbolRefAttr second,
               mlir::ArrayRef<mlir::Value> tips);

  mlir::func::FuncOp func;
  ProgramEmitter &emitter;
  const ir::TargetInfo &target;
  bool stepForm;
  mlir::SymbolTableCollection symbols;
  /// Ops that an emitted kernel contains already.
  llvm::DenseSet<mlir::Operation *> done;
  /// Inputs of the gemms so far.
  llvm::DenseSet<mlir::Value> gemmInputs;
  /// Ops whose slower path a remark has told already.
  llvm::DenseSet<mlir::Operation *> explained;
};

} // namespace lathe::passes

#endif // LATHE_PASSES_FUNCTIONFORMER_H

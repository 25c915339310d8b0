/// \file
/// The values of one function while it runs, and the ops' definitions. Private
/// to the interpreter.
#ifndef LATHE_IR_INTERPRETER_FRAME_H
#define LATHE_IR_INTERPRETER_FRAME_H

#include "ir/interpreter/Interpreter.h"

#include "llvm/ADT/DenseMap.h"

#include <map>
#include <memory>

namespace lathe::ir {

/// A matrix of blocks: format, sizes and rows.
struct Matrix {
  kernels::Format format = kernels::Format::F32;
  int64_t n = 0, k = 0;
  std::vector<const uint8_t *> rows;
};

class Frame {
public:
  Frame(WeightProvider &weights, const std::vector<StepRow> *rows)
      : weights(weights), rows(rows) {}

  /// The tensor of a value that was set.
  const Tensor &operator[](mlir::Value value) const {
    return tensors.find(value)->second;
  }
  const BatchValue &batch(mlir::Value value) const {
    return batches.find(value)->second;
  }

  /// Sets a value, after a check of the tensor against the value's type; the
  /// error is at `op`.
  mlir::LogicalResult set(mlir::Operation *op, mlir::Value value,
                          Tensor tensor);
  void setBatch(mlir::Value value, BatchValue batch) {
    batches.insert_or_assign(value, std::move(batch));
  }

  /// The weight that an op names; errors are at the op.
  mlir::FailureOr<Matrix> matrix(mlir::Operation *op,
                                 mlir::FlatSymbolRefAttr symbol);
  mlir::FailureOr<Tensor> table(mlir::Operation *op,
                                mlir::FlatSymbolRefAttr symbol);

  /// The step's rows; null in sequence form.
  const std::vector<StepRow> *stepRows() const { return rows; }

  /// What kv_append ops wrote, in program order.
  std::vector<std::shared_ptr<const std::map<KvPlace, KvEntry>>> appends;
  mlir::SymbolTableCollection symbols;

private:
  WeightProvider &weights;
  const std::vector<StepRow> *rows;
  llvm::DenseMap<mlir::Value, Tensor> tensors;
  llvm::DenseMap<mlir::Value, BatchValue> batches;
};

/// Checks that `ok`, else an error at `op` about the shapes of its operands.
mlir::LogicalResult require(mlir::Operation *op, bool ok,
                            const llvm::Twine &what, const Frame &frame);

// One definition per op; each sets its results.
mlir::LogicalResult evaluate(EmbedOp op, Frame &frame);
mlir::LogicalResult evaluate(PositionsOp op, Frame &frame);
mlir::LogicalResult evaluate(LinearOp op, Frame &frame);
mlir::LogicalResult evaluate(MergedLinearOp op, Frame &frame);
mlir::LogicalResult evaluate(MatmulOp op, Frame &frame);
mlir::LogicalResult evaluate(QuantizeRowsOp op, Frame &frame);
mlir::LogicalResult evaluate(ReshapeOp op, Frame &frame);
mlir::LogicalResult evaluate(TransposeOp op, Frame &frame);
mlir::LogicalResult evaluate(RepeatHeadsOp op, Frame &frame);
mlir::LogicalResult evaluate(AddOp op, Frame &frame);
mlir::LogicalResult evaluate(MulOp op, Frame &frame);
mlir::LogicalResult evaluate(SiluOp op, Frame &frame);
mlir::LogicalResult evaluate(GeluOp op, Frame &frame);
mlir::LogicalResult evaluate(ScaleOp op, Frame &frame);
mlir::LogicalResult evaluate(SoftcapOp op, Frame &frame);
mlir::LogicalResult evaluate(RmsNormOp op, Frame &frame);
mlir::LogicalResult evaluate(RopeOp op, Frame &frame);
mlir::LogicalResult evaluate(MaskOp op, Frame &frame);
mlir::LogicalResult evaluate(SoftmaxOp op, Frame &frame);
mlir::LogicalResult evaluate(AttentionOp op, Frame &frame);
mlir::LogicalResult evaluate(KvAppendOp op, Frame &frame);
mlir::LogicalResult evaluate(PagedAttentionOp op, Frame &frame);

} // namespace lathe::ir

#endif // LATHE_IR_INTERPRETER_FRAME_H

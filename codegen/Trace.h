/// \file
/// What a module of the graph dialect computes on given tokens, value by value,
/// so that two versions of it can be compared.
#ifndef LATHE_CODEGEN_TRACE_H
#define LATHE_CODEGEN_TRACE_H

#include "ir/interpreter/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

#include <string>
#include <vector>

namespace lathe::codegen {

/// The names in an op's location ("blk.3.attn_q"), in order; empty if it has
/// none.
std::vector<std::string> namesOf(mlir::Location loc);

/// All values of one run of @body and @head. Borrows the module.
struct Trace {
  struct Entry {
    mlir::Operation *op;
    unsigned result;
    ir::Tensor tensor;
  };
  /// Results in program order.
  std::vector<Entry> entries;
  /// Entry of a value; arguments of the functions have none.
  llvm::DenseMap<mlir::Value, size_t> indexOf;
  /// The values of function arguments.
  llvm::DenseMap<mlir::Value, ir::Tensor> arguments;
  ir::Tensor hidden, logits;
  bool step = false;

  /// The tensor of a value; null for a batch.
  const ir::Tensor *find(mlir::Value value) const;
};

/// Runs @body on the tokens as one sequence (in step form as one step), then
/// @head on `headInput`, or on @body's rows if that is null. Errors are
/// diagnostics.
mlir::FailureOr<Trace> traceModule(mlir::ModuleOp module,
                                   ir::WeightProvider &weights,
                                   const std::vector<int32_t> &tokens,
                                   const ir::Tensor *headInput);

/// `count` rows of one sequence from position `start` on.
std::vector<ir::StepRow> rowsFrom(size_t start, size_t count);

/// The hidden rows of @body in step form when the tokens come in steps of the
/// given sizes.
mlir::FailureOr<ir::Tensor> hiddenBySteps(mlir::ModuleOp module,
                                          ir::WeightProvider &weights,
                                          const std::vector<int32_t> &tokens,
                                          const std::vector<size_t> &steps);

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_TRACE_H

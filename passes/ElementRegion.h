/// \file
/// Elementwise graph ops as scalar arith/math: what form-kernels puts into the
/// element regions of kernels.
#ifndef LATHE_PASSES_ELEMENTREGION_H
#define LATHE_PASSES_ELEMENTREGION_H

#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace lathe::passes {

/// True for ops that map each element of their operands by itself, so that they
/// can move into an element region.
bool isElementwise(mlir::Operation *op);

/// Emits `op` on scalars: operands are looked up in `scalars` (keyed by the
/// tensors without reshapes), the result is added. `op` must be elementwise.
void emitElement(mlir::OpBuilder &builder, mlir::Operation *op,
                 llvm::DenseMap<mlir::Value, mlir::Value> &scalars);

/// The value without the reshapes around it: what has storage of its own.
mlir::Value storageOf(mlir::Value value);

/// The ops that read `value`, looking through reshapes; each op once.
llvm::SmallVector<mlir::Operation *> usersOf(mlir::Value value);

} // namespace lathe::passes

#endif // LATHE_PASSES_ELEMENTREGION_H

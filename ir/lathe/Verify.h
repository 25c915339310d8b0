/// \file
/// What the verifiers of the dialect's ops share.
#ifndef LATHE_IR_LATHE_VERIFY_H
#define LATHE_IR_LATHE_VERIFY_H

#include "ir/lathe/Lathe.h"

namespace lathe::ir {

/// Columns of a value: its last dimension.
int64_t lastDim(mlir::Value value);

int64_t dimOf(mlir::Value value, unsigned index);

/// Heads and their size are part of a model, so they are static and positive;
/// only rows are not known before a step.
mlir::LogicalResult verifyHeads(mlir::Operation *op, mlir::Value heads);

/// What is given per row of `value`.
mlir::LogicalResult verifyRows(mlir::Operation *op, mlir::Value value,
                               mlir::Value perRow);

bool isFiniteFrom(const llvm::APFloat &value, double least);

} // namespace lathe::ir

#endif // LATHE_IR_LATHE_VERIFY_H

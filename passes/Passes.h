/// \file
/// Lathe's passes (Passes.td) and the dialects that they work on.
#ifndef LATHE_PASSES_PASSES_H
#define LATHE_PASSES_PASSES_H

#include "ir/kernel/Kernel.h"
#include "ir/kernel/TargetInfo.h"
#include "ir/lathe/Lathe.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace lathe::passes {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

/// FormKernels and PackWeights for a target; the constructors without arguments
/// use TargetInfo's defaults.
std::unique_ptr<mlir::Pass> createFormKernels(const ir::TargetInfo &target);
std::unique_ptr<mlir::Pass> createPackWeights(const ir::TargetInfo &target);

/// Whether a planned program may run as it is: buffers that share a slot are
/// never alive together and every launch waits for what it depends on. Errors
/// are at the op.
mlir::LogicalResult checkPlan(ir::ProgramOp program);

/// Whether only launches that may be are marked as wanted. Errors are at the
/// op.
mlir::LogicalResult checkWanted(ir::ProgramOp program);

/// Registers every dialect that Lathe's IR may contain.
void registerDialects(mlir::DialectRegistry &registry);

/// Registers every pass with MLIR's global registry, for lathe-opt.
void registerAllPasses();

} // namespace lathe::passes

#endif // LATHE_PASSES_PASSES_H

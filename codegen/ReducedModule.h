/// \file
/// The part of a module that is needed to compute one op.
#ifndef LATHE_CODEGEN_REDUCEDMODULE_H
#define LATHE_CODEGEN_REDUCEDMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include "llvm/ADT/SmallVector.h"

#include <string>

namespace lathe::codegen {

struct ReducedModule {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// The name of its one function: that of the function the op is in.
  std::string function;
  /// The values of the original module that became the function's arguments,
  /// in order; without the !lathe.batch.
  llvm::SmallVector<mlir::Value> inputs;
};

/// What a reduced module keeps.
struct Reduction {
  /// Only ops of root's block of the model ("blk.3"); what they read from
  /// elsewhere becomes an argument. Otherwise all that leads to root.
  bool sameBlock = true;
  /// All weights and groups, not only those that the kept ops name.
  bool allSymbols = false;
};

/// A module whose one function gives the results of `root`, an op in a function
/// of a module of the graph dialect.
ReducedModule reduceTo(mlir::Operation *root, Reduction reduction);

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_REDUCEDMODULE_H

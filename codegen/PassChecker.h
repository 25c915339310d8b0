/// \file
/// `--check-passes`: runs the reference interpreter before and after each pass
/// over the graph, and compares the engine with what the graph computes.
#ifndef LATHE_CODEGEN_PASSCHECKER_H
#define LATHE_CODEGEN_PASSCHECKER_H

#include "codegen/Trace.h"
#include "runtime/support/Result.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::codegen {

/// Holds what the graph computed before the pass that comes next. One
/// compilation, one thread.
class PassChecker {
public:
  /// `weights` must outlive the checker. `outputStem` is what files with
  /// reduced modules are named after.
  PassChecker(ir::WeightProvider &weights, std::string outputStem)
      : weights(weights), outputStem(std::move(outputStem)) {}

  /// Remembers what the module computes: the state before the first pass.
  /// Errors: InvalidInput (the interpreter cannot run it; the reason is a
  /// diagnostic).
  runtime::Result<void> start(mlir::ModuleOp module);

  /// Compares the module with what it was before `pass` and remembers it. `run`
  /// runs the pass on another module: it is tried on the reduced one. Errors:
  /// Internal, naming the pass, the first op whose value differs, its place in
  /// the model and the file with the reduced module.
  runtime::Result<void>
  check(mlir::ModuleOp module, std::string_view pass,
        const std::function<mlir::LogicalResult(mlir::ModuleOp)> &run);

  /// Compares an engine with the module that was checked last. `phases` are the
  /// passes in between, for the message. Errors: those of opening and running
  /// the engine; Internal.
  runtime::Result<void> checkEngine(const std::string &path,
                                    std::string_view phases);

private:
  struct Snapshot {
    mlir::OwningOpRef<mlir::ModuleOp> module;
    Trace trace;
  };
  runtime::Result<Snapshot> snapshot(mlir::ModuleOp module,
                                     const ir::Tensor *headInput);
  std::string
  explain(const Snapshot &after, std::string_view pass, double bound,
          const std::function<mlir::LogicalResult(mlir::ModuleOp)> &run);

  ir::WeightProvider &weights;
  std::string outputStem;
  std::vector<int32_t> tokens;
  Snapshot before;
};

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_PASSCHECKER_H

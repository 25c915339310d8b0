/// \file
/// The numbered phases from a model's graph to planned kernels.
#ifndef LATHE_PASSES_PIPELINE_H
#define LATHE_PASSES_PIPELINE_H

#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"

#include <span>
#include <string>
#include <string_view>

namespace lathe::passes {

/// What the pipeline may be told.
struct PipelineOptions {
  std::string kvDtype = "f16"; ///< A name of kernels/abi/KvTile.h.
  ir::TargetInfo target;
};

/// One phase: its number in the design, its name, which is also its pass's, and
/// what it does.
struct Phase {
  int number;
  std::string_view name;
  std::string_view summary;
  /// Phases that no engine can be made without.
  bool mandatory;
  /// From here on the IR depends on the target.
  bool perTarget;
  std::unique_ptr<mlir::Pass> (*create)(const PipelineOptions &);
};

/// All phases, in order.
std::span<const Phase> phases();

/// The phase called `name`, or null.
const Phase *findPhase(std::string_view name);

} // namespace lathe::passes

#endif // LATHE_PASSES_PIPELINE_H

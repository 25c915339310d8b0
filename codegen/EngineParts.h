/// \file
/// The parts of an engine's description that come straight from the IR.
#ifndef LATHE_CODEGEN_ENGINEPARTS_H
#define LATHE_CODEGEN_ENGINEPARTS_H

#include "codegen/WeightStore.h"
#include "codegen/cpu/KernelPrinter.h"
#include "codegen/engine/EngineWriter.h"
#include "runtime/engine/Engine.h"

#include "mlir/IR/BuiltinOps.h"

#include <vector>

namespace lathe::codegen {

/// The weights of a module in its order, with their places.
struct PlacedWeights {
  std::vector<EngineWeight> weights;
  WeightOffsets offsets;
  uint64_t parameters = 0; ///< Elements of matrices.
  uint64_t bytes = 0;      ///< Of their section.
};

/// Describes and places the weights of a packed module. Their bytes come from
/// `store`, or from `engine` if that is not null, which must have packed them
/// just so; both must outlive the result. Errors: InvalidInput (a weight too
/// large), Unsupported (`engine` holds other weights).
runtime::Result<PlacedWeights> placeWeights(mlir::ModuleOp module,
                                            const WeightStore &store,
                                            const runtime::Engine *engine);

engine::fb::ModelT describeModel(ir::ModelAttr model);

/// Whether a planned module computes what its `#lathe.model` says: the buffers
/// that the runtime sizes by it have just its rows. Errors: InvalidInput.
runtime::Result<void> checkModel(mlir::ModuleOp module, ir::ModelAttr model);

/// The KV groups of a planned module; none if it has no cache.
std::vector<engine::fb::KvGroupT> describeGroups(mlir::ModuleOp module);

/// The files of `lathe.files`, which may be null.
std::vector<engine::fb::SourceFileT> describeSources(mlir::ArrayAttr files);

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_ENGINEPARTS_H

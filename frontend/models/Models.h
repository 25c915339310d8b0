/// \file
/// The architectures that Lathe knows: one file each, from hyper-parameters to
/// graph IR.
#ifndef LATHE_FRONTEND_MODELS_MODELS_H
#define LATHE_FRONTEND_MODELS_MODELS_H

#include "frontend/models/GraphBuilder.h"

#include <functional>
#include <span>
#include <string_view>

namespace lathe::frontend {

/// What differs between models of one architecture in no op: for messages and
/// the manifest.
struct ImportOptions {
  /// Positions that the engine shall cover; 0: as many as the model was trained
  /// for, but at most defaultContextMax.
  int64_t context = 0;
  /// False: from the header alone. Neither are the blocks of tensors checked
  /// nor files hashed (`lathe.files` is left out): the graph is for its sizes.
  bool readTensors = true;
  /// Told about each file that is hashed: bytes done, bytes in all.
  std::function<void(uint64_t, uint64_t)> progress;
  /// Told what was decided for the user, in one line.
  std::function<void(std::string_view)> notice;
};

/// An engine holds a rotary table for each position that it covers: what
/// somebody wants who does not say so stays below a few hundred megabytes.
inline constexpr int64_t defaultContextMax = 131072;

/// An architecture: its name in GGUF files, and what builds its graph between
/// the token ids and the logits.
struct Architecture {
  std::string_view name;
  void (*build)(GraphBuilder &graph);
};

/// All of them, by name.
std::span<const Architecture> architectures();

/// The graph of a GGUF file in sequence form. Errors: Unsupported (an unknown
/// architecture, named, with the list of known ones), InvalidInput and NotFound
/// (a missing or misshapen hyper-parameter or tensor).
runtime::Result<mlir::OwningOpRef<mlir::ModuleOp>>
importGguf(mlir::MLIRContext &context, const GgufFile &file,
           const ImportOptions &options = {});

void buildGemma3(GraphBuilder &graph);
void buildLlama(GraphBuilder &graph);
void buildQwen2(GraphBuilder &graph);
void buildQwen3(GraphBuilder &graph);

} // namespace lathe::frontend

#endif // LATHE_FRONTEND_MODELS_MODELS_H

/// \file
/// The sizes of models whose weights are not read: of a GGUF header, of a
/// config.json, of well-known models.
#ifndef LATHE_TOOLS_LATHE_MODELSIZES_H
#define LATHE_TOOLS_LATHE_MODELSIZES_H

#include "frontend/gguf/GgufFile.h"
#include "runtime/engine/Engine.h"
#include "runtime/schedule/ModelShape.h"
#include "runtime/support/Result.h"

#include <optional>
#include <string>

namespace lathe::tools {

/// A model without its weights.
struct ModelSizes {
  runtime::ModelShape shape;
  u64 weightBytes = 0;   ///< As they are.
  u64 gatheredBytes = 0; ///< Of ModelShape::gatheredParameters.
  /// Whether matrices as they are are multiplied in int8.
  bool quantized = false;
};

/// Of a model that `lathe plan --preset` knows, in 16 bits. Errors: NotFound,
/// with the list of names.
runtime::Result<ModelSizes> sizesOfPreset(const std::string &name);

/// Of a config.json as Hugging Face's transformers writes it. Errors: those of
/// reading; InvalidInput (not JSON, a key that is missing or out of range,
/// named), Unsupported (an unknown architecture, with the known ones).
runtime::Result<ModelSizes> sizesOfConfig(const std::string &path);

/// Of a GGUF model. Errors as sizesOfConfig().
runtime::Result<ModelSizes> sizesOfGguf(const frontend::GgufFile &file);

/// Of an engine; its weights as it holds them.
ModelSizes sizesOfEngine(const runtime::Engine &engine);

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_MODELSIZES_H

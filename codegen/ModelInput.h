/// \file
/// What a compilation starts from: a GGUF file, a dumped .mlir and the model
/// file that it names, or an engine, which holds both its IR and its weights.
#ifndef LATHE_CODEGEN_MODELINPUT_H
#define LATHE_CODEGEN_MODELINPUT_H

#include "codegen/Compiler.h"
#include "codegen/engine/EngineWriter.h"
#include "frontend/gguf/GgufFile.h"
#include "runtime/engine/Engine.h"
#include "runtime/support/Result.h"
#include "runtime/text/TokenizerSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace lathe::codegen {

struct ModelInput {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Keeps `sources` mapped.
  std::unique_ptr<frontend::GgufFile> file;
  /// The files of the module's `lathe.files`, in order.
  std::vector<std::span<const uint8_t>> sources;
  mlir::ArrayAttr files;
  std::optional<runtime::TokenizerSpec> tokenizer;
  /// Of a .mlir: the model file that it names, and its own text.
  std::string modelPath, text;
  /// The engine that is compiled anew, or null: its packed weights are copied.
  std::shared_ptr<const runtime::Engine> engine;
  /// IR of the phases before the module's own, from the engine.
  std::vector<EngineIr> earlierIr;
};

/// The graph of a model file by its header alone, for sizes: neither sources'
/// hashes nor the tokenizer. Errors: those of the readers.
runtime::Result<ModelInput> loadHeader(mlir::MLIRContext &context,
                                       const std::string &path,
                                       const CompileOptions &options);

/// Loads `path`. An engine starts from the last phase that no target has
/// touched; what it was compiled with (`kv=`, `disable=`) replaces `options`'.
/// A .mlir must carry `lathe.files`; the model file is looked for
/// at options.source, or beside the .mlir under its own name, and must have the
/// bytes that the .mlir was made from (SHA-256). Errors: those of the readers;
/// NotFound and InvalidInput for the model file of a .mlir.
runtime::Result<ModelInput> loadModel(mlir::MLIRContext &context,
                                      const std::string &path,
                                      CompileOptions &options);

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_MODELINPUT_H

/// \file
/// What a compilation starts from: a GGUF file, or a dumped .mlir and the model
/// file that it names.
#ifndef LATHE_CODEGEN_MODELINPUT_H
#define LATHE_CODEGEN_MODELINPUT_H

#include "codegen/Compiler.h"
#include "frontend/gguf/GgufFile.h"
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
};

/// Loads `path`. A .mlir must carry `lathe.files`; the model file is looked for
/// at options.source, or beside the .mlir under its own name, and must have the
/// bytes that the .mlir was made from (SHA-256). Errors: those of the readers;
/// NotFound and InvalidInput for the model file of a .mlir.
runtime::Result<ModelInput> loadModel(mlir::MLIRContext &context,
                                      const std::string &path,
                                      const CompileOptions &options);

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_MODELINPUT_H

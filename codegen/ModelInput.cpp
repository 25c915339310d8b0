#include "codegen/ModelInput.h"

#include "codegen/IrText.h"
#include "frontend/models/Models.h"
#include "frontend/models/Tokenizer.h"
#include "ir/lathe/Lathe.h"
#include "passes/Pipeline.h"
#include "runtime/engine/FileLayout.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Sha256.h"

#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <filesystem>

using namespace lathe;
using namespace lathe::codegen;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::Result;

namespace {

Result<void> openFile(ModelInput &input, const std::string &path) {
  auto file = frontend::GgufFile::open(path);
  if (!file)
    return failFrom(file);
  input.file = std::make_unique<frontend::GgufFile>(std::move(*file));
  for (uint32_t shard = 0; shard < input.file->shardCount(); ++shard)
    input.sources.push_back(input.file->shardBytes(shard));
  return {};
}

Result<void> openSources(ModelInput &input, const std::string &path) {
  if (auto ok = openFile(input, path); !ok)
    return ok;
  auto tokenizer = frontend::readTokenizer(*input.file);
  if (!tokenizer)
    return failFrom(tokenizer);
  input.tokenizer = std::move(*tokenizer);
  return {};
}

Result<ModelInput> loadGguf(mlir::MLIRContext &context, const std::string &path,
                            const CompileOptions &options) {
  ModelInput input;
  if (auto ok = openSources(input, path); !ok)
    return failFrom(ok);
  frontend::ImportOptions importOptions;
  importOptions.context = options.context;
  importOptions.progress = [&](uint64_t done, uint64_t total) {
    if (options.progress)
      options.progress("read", done, total);
  };
  importOptions.notice = options.onNotice;
  auto module = frontend::importGguf(context, *input.file, importOptions);
  if (!module)
    return failFrom(module);
  input.module = std::move(*module);
  input.files =
      (*input.module)
          ->getAttrOfType<mlir::ArrayAttr>(ir::LatheDialect::filesAttrName);
  return input;
}

Result<ModelInput> loadMlir(mlir::MLIRContext &context, const std::string &path,
                            const CompileOptions &options) {
  ModelInput input;
  auto file = runtime::MappedFile::open(path);
  if (!file)
    return failFrom(file);
  input.text.assign(file->bytes().begin(), file->bytes().end());
  if (auto ok = checkIrText(input.text); !ok)
    return failFrom(ok, path + ": not valid IR");
  input.module = mlir::parseSourceString<mlir::ModuleOp>(
      input.text, mlir::ParserConfig(&context), path);
  if (!input.module)
    return fail(ErrorKind::InvalidInput, "{}: not valid IR", path);
  input.files =
      (*input.module)
          ->getAttrOfType<mlir::ArrayAttr>(ir::LatheDialect::filesAttrName);
  if (!input.files || input.files.empty())
    return fail(ErrorKind::InvalidInput,
                "{}: has no 'lathe.files', so its weights have no source",
                path);
  auto first = mlir::cast<ir::FileAttr>(input.files[0]);
  std::string model = options.source;
  if (model.empty())
    model = (std::filesystem::path(path).parent_path() / first.getName().str())
                .string();
  if (!std::filesystem::exists(model))
    return fail(ErrorKind::NotFound,
                "{}: its weights come from '{}', which is not there; say where "
                "with --source",
                path, model);
  if (auto ok = openSources(input, model); !ok)
    return failFrom(ok);
  input.modelPath = model;
  if (input.sources.size() != input.files.size())
    return fail(ErrorKind::InvalidInput, "{}: {} is in {} files, expected {}",
                path, model, input.sources.size(), input.files.size());
  for (auto [attr, bytes] : llvm::zip(input.files, input.sources)) {
    auto expected = mlir::cast<ir::FileAttr>(attr);
    if (runtime::Sha256::toHex(runtime::Sha256::digest(bytes)) !=
        expected.getSha256())
      return fail(ErrorKind::InvalidInput,
                  "{}: {} is not the file that this IR was made from (its "
                  "SHA-256 differs)",
                  path, model);
  }
  return input;
}

Result<ModelInput> loadEngine(mlir::MLIRContext &context,
                              const std::string &path,
                              CompileOptions &options) {
  ModelInput input;
  auto engine = runtime::Engine::open(path);
  if (!engine)
    return failFrom(engine);
  input.engine = std::move(*engine);
  std::string start;
  for (const passes::Phase &phase : passes::phases())
    if (!phase.perTarget && phase.name != "kv-cache-layout")
      start = phase.name;
  for (const std::string &phase : input.engine->phases()) {
    auto text = input.engine->ir(phase);
    if (!text)
      return failFrom(text);
    input.earlierIr.push_back({phase, std::move(*text)});
    if (phase == start)
      break;
  }
  if (input.earlierIr.empty() || input.earlierIr.back().phase != start)
    return fail(ErrorKind::InvalidInput,
                "{}: has no IR of phase {}, from which it could be compiled "
                "for another target",
                path, start);
  if (auto ok = checkIrText(input.earlierIr.back().text); !ok)
    return failFrom(ok, path + ": its IR of phase " + start + " is not valid");
  input.module = mlir::parseSourceString<mlir::ModuleOp>(
      input.earlierIr.back().text, mlir::ParserConfig(&context));
  if (!input.module)
    return fail(ErrorKind::InvalidInput, "{}: its IR of phase {} is not valid",
                path, start);
  input.files =
      (*input.module)
          ->getAttrOfType<mlir::ArrayAttr>(ir::LatheDialect::filesAttrName);
  if (auto tokenizer = input.engine->tokenizer())
    input.tokenizer = std::move(*tokenizer);
  options.disabledPhases.clear();
  if (const auto *stored = input.engine->manifest().options())
    for (const auto *option : *stored) {
      std::string_view text = option->string_view();
      if (text.starts_with("kv="))
        options.kvDtype = text.substr(3);
      else if (text.starts_with("disable="))
        options.disabledPhases.emplace_back(text.substr(8));
    }
  return input;
}

/// Whether the file begins like an engine.
bool isEngine(const std::string &path) {
  // What cannot be mapped is for the readers to complain about.
  auto file = runtime::MappedFile::open(path);
  return file && file->size() >= runtime::engineMagic.size() &&
         std::equal(runtime::engineMagic.begin(), runtime::engineMagic.end(),
                    file->bytes().begin());
}

} // namespace

Result<ModelInput> codegen::loadHeader(mlir::MLIRContext &context,
                                       const std::string &path,
                                       const CompileOptions &options) {
  ModelInput input;
  if (auto ok = openFile(input, path); !ok)
    return failFrom(ok);
  auto module = frontend::importGguf(context, *input.file,
                                     {.context = options.context,
                                      .readTensors = false,
                                      .progress = {},
                                      .notice = options.onNotice});
  if (!module)
    return failFrom(module);
  input.module = std::move(*module);
  return input;
}

Result<ModelInput> codegen::loadModel(mlir::MLIRContext &context,
                                      const std::string &path,
                                      CompileOptions &options) {
  if (isEngine(path))
    return loadEngine(context, path, options);
  if (path.ends_with(".mlir"))
    return loadMlir(context, path, options);
  return loadGguf(context, path, options);
}

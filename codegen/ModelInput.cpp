#include "codegen/ModelInput.h"

#include "frontend/models/Models.h"
#include "frontend/models/Tokenizer.h"
#include "ir/lathe/Lathe.h"
#include "runtime/support/Sha256.h"

#include "mlir/Parser/Parser.h"

#include <filesystem>

using namespace lathe;
using namespace lathe::codegen;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::Result;

namespace {

Result<void> openSources(ModelInput &input, const std::string &path) {
  auto file = frontend::GgufFile::open(path);
  if (!file)
    return failFrom(file);
  input.file = std::make_unique<frontend::GgufFile>(std::move(*file));
  for (uint32_t shard = 0; shard < input.file->shardCount(); ++shard)
    input.sources.push_back(input.file->shardBytes(shard));
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
  input.module =
      mlir::parseSourceFile<mlir::ModuleOp>(path, mlir::ParserConfig(&context));
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

} // namespace

Result<ModelInput> codegen::loadModel(mlir::MLIRContext &context,
                                      const std::string &path,
                                      const CompileOptions &options) {
  if (path.ends_with(".mlir"))
    return loadMlir(context, path, options);
  return loadGguf(context, path, options);
}

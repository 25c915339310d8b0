#include "frontend/models/Models.h"

#include "runtime/support/Sha256.h"

#include <algorithm>
#include <filesystem>

using namespace lathe;
using namespace lathe::frontend;
using runtime::ErrorKind;
using runtime::fail;

namespace {

constexpr Architecture table[] = {
    {"gemma3", buildGemma3},
    {"llama", buildLlama},
    {"qwen2", buildQwen2},
    {"qwen3", buildQwen3},
};

} // namespace

std::span<const Architecture> frontend::architectures() { return table; }

runtime::Result<mlir::OwningOpRef<mlir::ModuleOp>>
frontend::importGguf(mlir::MLIRContext &context, const GgufFile &file,
                     const ImportOptions &options) {
  auto name = file.getString("general.architecture");
  if (!name)
    return runtime::failFrom(name);
  const auto *found =
      std::find_if(std::begin(table), std::end(table),
                   [&](const Architecture &a) { return a.name == *name; });
  if (found == std::end(table)) {
    std::string known;
    for (const Architecture &architecture : table)
      known += (known.empty() ? "" : ", ") + std::string(architecture.name);
    return fail(ErrorKind::Unsupported,
                "{}: architecture '{}' is not supported; known are {}",
                file.path(), *name, known);
  }
  std::string prefix(*name);
  auto trained = file.getU32(prefix + ".context_length");
  auto hidden = file.getU32(prefix + ".embedding_length");
  auto layers = file.getU32(prefix + ".block_count");
  auto title = file.getString("general.name", *name);
  for (const auto *value : {&trained, &hidden, &layers})
    if (!*value)
      return runtime::failFrom(*value);
  if (!title)
    return runtime::failFrom(title);
  if (*trained == 0)
    return fail(ErrorKind::InvalidInput, "{}: '{}.context_length' is 0",
                file.path(), prefix);
  if (options.context > *trained)
    return fail(ErrorKind::InvalidInput,
                "a context of {} is more than the {} that {} was trained for",
                options.context, *trained, file.path());
  int64_t positions = options.context > 0
                          ? options.context
                          : std::min<int64_t>(*trained, defaultContextMax);
  if (options.context == 0 && positions < *trained && options.notice)
    options.notice(fmt::format("the engine covers {} of the {} positions that "
                               "the model was trained for; --context sets it",
                               positions, *trained));

  GraphBuilder graph(context, file, positions, options.readTensors);
  found->build(graph);
  const GgufTensor *embedding = file.findTensor("token_embd.weight");
  auto model = ir::ModelAttr::get(
      &context, prefix, std::string(*title),
      embedding ? static_cast<int64_t>(embedding->rows()) : 0, *hidden, *layers,
      positions);
  auto module = graph.finish(model);
  if (!module || !options.readTensors)
    return module;

  llvm::SmallVector<mlir::Attribute> files;
  uint64_t total = 0, done = 0;
  for (uint32_t shard = 0; shard < file.shardCount(); ++shard)
    total += file.shardBytes(shard).size();
  for (uint32_t shard = 0; shard < file.shardCount(); ++shard) {
    std::span<const uint8_t> bytes = file.shardBytes(shard);
    runtime::Sha256 hash;
    constexpr size_t piece = 16 << 20;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      auto part = bytes.subspan(at, std::min(piece, bytes.size() - at));
      hash.update(part);
      done += part.size();
      if (options.progress)
        options.progress(done, total);
    }
    std::string base =
        std::filesystem::path(file.shardPath(shard)).filename().string();
    files.push_back(ir::FileAttr::get(&context, base, bytes.size(),
                                      runtime::Sha256::toHex(hash.finish())));
  }
  (**module)->setAttr(ir::LatheDialect::filesAttrName,
                      mlir::ArrayAttr::get(&context, files));
  return module;
}

#include "tools/lathe/OpenModel.h"

#include "frontend/gguf/GgufFile.h"
#include "frontend/models/Tokenizer.h"
#include "runtime/device/CpuFeatures.h"
#include "runtime/engine/Validate.h"
#include "runtime/support/KvTypeNames.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/ModelCache.h"
#include "tools/lathe/Places.h"

#include <algorithm>
#include <cstdlib>
#include <spdlog/spdlog.h>

using namespace lathe;
using namespace lathe::tools;
using runtime::displayPath;
using runtime::Engine;
using runtime::Tokenizer;

namespace {

/// What the user asks for, by option or environment; may be empty.
std::string wantedIsa(const ModelOptions &options) {
  const char *variable = std::getenv("LATHE_ISA");
  return options.isa.empty() && variable ? variable : options.isa;
}

/// The target to compile a model for: what is asked for, or cpu:native.
std::string targetFor(const ModelOptions &options) {
  std::string isa = wantedIsa(options);
  if (isa.empty())
    isa = "native";
  return isa.starts_with("cpu:") ? isa : "cpu:" + isa;
}

/// Whether code for the ISA layer that is asked for can exist and run here.
Result<void> checkIsa(const ModelOptions &options) {
  std::string isa = targetFor(options).substr(4);
  if (isa == "native")
    return {};
  std::string known;
  for (const runtime::IsaLayer &layer : runtime::isaLayers())
    known += (known.empty() ? "" : ", ") + std::string(layer.name);
  const char *origin = options.isa.empty() ? "LATHE_ISA" : "--isa";
  if (std::ranges::none_of(
          runtime::isaLayers(),
          [&](const runtime::IsaLayer &layer) { return layer.name == isa; }))
    return fail(ErrorKind::InvalidInput, "{} {}: unknown; known are {}", origin,
                runtime::quoted(wantedIsa(options)), known);
  if (!runtime::CpuFeatures::detect().supportsIsa(isa))
    return fail(ErrorKind::Environment, "{} {}: this CPU cannot run it", origin,
                isa);
  return {};
}

/// Says what --kv-dtype cannot change any more.
void checkKvDtype(const Engine &engine, const ModelOptions &options) {
  const auto *groups = engine.manifest().kv_groups();
  if (options.kvDtype.empty() || !groups || groups->size() == 0)
    return;
  std::string_view own = runtime::viewOf((*groups)[0]->dtype());
  if (own != options.kvDtype)
    spdlog::warn("--kv-dtype {} has no effect: {} was compiled with {}; give "
                 "the model file",
                 options.kvDtype, displayPath(engine.path()), displayPath(own));
}

tl::unexpected<Error> notAModel(const std::string &path) {
  std::string advice =
      path.ends_with(".mlir") ? "; compile it first: lathe compile" : "";
  return fail(ErrorKind::InvalidInput,
              "{}: neither a GGUF model nor a Lathe engine{}",
              displayPath(path), advice);
}

/// Whether what is wrong with an engine's code can be mended from its IR.
bool canRebuild(const Engine &engine, const Error &error) {
  return engine.trust().state != runtime::TrustState::Bad &&
         (error.kind == ErrorKind::Environment ||
          error.kind == ErrorKind::Untrusted ||
          error.kind == ErrorKind::Unsupported);
}

} // namespace

void ModelOptions::addTo(CLI::App &command) {
  command.add_option("--isa", isa,
                     "ISA layer to run: generic, avx2, avx512 or avx512bf16 "
                     "(default: the best that fits this CPU)");
  command
      .add_option("--kv-dtype", kvDtype,
                  "Elements of the KV cache when a model file is compiled")
      ->check(CLI::IsMember(kvDtypeNames()))
      ->default_str("f16");
  command.add_flag("--trust-code", trustCode,
                   "Run an engine's code whoever made it");
}

Result<std::shared_ptr<const Engine>>
tools::openEngine(const std::string &model, const ModelOptions &options) {
  if (auto runs = checkIsa(options); !runs)
    return failFrom(runs);
  auto path = findModel(model);
  if (!path)
    return failFrom(path);
  auto kind = kindOf(*path);
  if (!kind)
    return failFrom(kind);
  if (*kind == FileKind::Engine) {
    if (!options.disabledPhases.empty())
      return fail(ErrorKind::InvalidInput,
                  "{} is compiled already; only a model file can be compiled "
                  "without {}: give the .gguf",
                  displayPath(*path), options.disabledPhases.front());
    auto engine =
        Engine::open(*path, {.trustCode = options.trustCode, .trust = {}});
    if (engine)
      checkKvDtype(**engine, options);
    return engine;
  }
  if (*kind == FileKind::Other)
    return notAModel(*path);
  return openCached(
      *path, {.target = targetFor(options),
              .kvDtype = options.kvDtype.empty() ? "f16" : options.kvDtype,
              .disabledPhases = options.disabledPhases});
}

Result<std::shared_ptr<const runtime::LoadedEngine>>
tools::loadCode(const std::shared_ptr<const Engine> &engine,
                const ModelOptions &options) {
  auto loaded = runtime::LoadedEngine::load(engine, options.isa);
  if (loaded || !canRebuild(*engine, loaded.error()))
    return loaded;
  // Its code is for another CPU or from an unknown hand, but its IR is there.
  auto rebuilt = openRebuilt(*engine, targetFor(options));
  if (!rebuilt)
    return fail(loaded.error().kind, "{} ({})", loaded.error().message,
                rebuilt.error().message);
  return runtime::LoadedEngine::load(std::move(*rebuilt), options.isa);
}

Result<std::shared_ptr<const runtime::LoadedEngine>>
tools::loadModel(const std::string &model, const ModelOptions &options) {
  auto engine = openEngine(model, options);
  if (!engine)
    return failFrom(engine);
  return loadCode(*engine, options);
}

Result<Tokenizer> tools::tokenizerOf(const Engine &engine) {
  auto spec = engine.tokenizer();
  if (!spec)
    return failFrom(spec);
  auto tokenizer = Tokenizer::create(std::move(*spec));
  if (!tokenizer)
    return failFrom(tokenizer, displayPath(engine.path()));
  return tokenizer;
}

Result<Tokenizer> tools::openTokenizer(const std::string &model) {
  auto path = findModel(model);
  if (!path)
    return failFrom(path);
  auto kind = kindOf(*path);
  if (!kind)
    return failFrom(kind);
  if (*kind == FileKind::Engine) {
    auto engine = Engine::open(*path);
    if (!engine)
      return failFrom(engine);
    return tokenizerOf(**engine);
  }
  if (*kind == FileKind::Other)
    return notAModel(*path);
  auto file = frontend::GgufFile::open(*path);
  if (!file)
    return failFrom(file);
  auto spec = frontend::readTokenizer(*file);
  if (!spec)
    return failFrom(spec);
  auto tokenizer = Tokenizer::create(std::move(*spec));
  if (!tokenizer)
    return failFrom(tokenizer, displayPath(*path));
  return tokenizer;
}

#include "tools/lathe/OpenModel.h"

#include "frontend/gguf/GgufFile.h"
#include "frontend/models/Tokenizer.h"
#include "runtime/device/CpuFeatures.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/ModelCache.h"
#include "tools/lathe/Places.h"

#include <cstdlib>

using namespace lathe;
using namespace lathe::tools;
using runtime::displayPath;
using runtime::Engine;
using runtime::Tokenizer;

namespace {

/// The target to compile a model for: what is asked for, or this CPU's best.
std::string targetFor(const ModelOptions &options) {
  std::string isa = options.isa;
  if (const char *variable = std::getenv("LATHE_ISA"); isa.empty() && variable)
    isa = variable;
  if (isa.empty() || isa == "native" || isa == "cpu:native")
    isa = runtime::CpuFeatures::detect().bestIsa();
  return isa.starts_with("cpu:") ? isa : "cpu:" + isa;
}

tl::unexpected<Error> notAModel(const std::string &path) {
  std::string advice =
      path.ends_with(".mlir") ? "; compile it first: lathe compile" : "";
  return fail(ErrorKind::InvalidInput,
              "{}: neither a GGUF model nor a Lathe engine{}",
              displayPath(path), advice);
}

/// Whether what is wrong with an engine's code can be mended from its IR, for
/// the target that is wanted here.
bool canRebuild(const Engine &engine, const Error &error,
                const ModelOptions &options) {
  std::string isa = targetFor(options).substr(4);
  return runtime::CpuFeatures::detect().supportsIsa(isa) &&
         engine.trust().state != runtime::TrustState::Bad &&
         (error.kind == ErrorKind::Environment ||
          error.kind == ErrorKind::Untrusted ||
          error.kind == ErrorKind::Unsupported);
}

} // namespace

void ModelOptions::addTo(CLI::App &command) {
  command.add_option("--isa", isa,
                     "ISA layer to run: generic, avx2 or avx512 (default: the "
                     "best that fits this CPU)");
  command
      .add_option("--kv-dtype", kvDtype,
                  "Elements of the KV cache when a model file is compiled")
      ->check(CLI::IsMember({"f16", "f32"}))
      ->capture_default_str();
  command.add_flag("--trust-code", trustCode,
                   "Run an engine's code whoever made it");
}

Result<std::shared_ptr<const Engine>>
tools::openEngine(const std::string &model, const ModelOptions &options) {
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
    return Engine::open(*path, {.trustCode = options.trustCode, .trust = {}});
  }
  if (*kind == FileKind::Other)
    return notAModel(*path);
  return openCached(*path, {.target = targetFor(options),
                            .kvDtype = options.kvDtype,
                            .disabledPhases = options.disabledPhases});
}

Result<std::shared_ptr<const runtime::LoadedEngine>>
tools::loadCode(std::shared_ptr<const Engine> engine,
                const ModelOptions &options) {
  auto loaded = runtime::LoadedEngine::load(engine, options.isa);
  if (loaded || !canRebuild(*engine, loaded.error(), options))
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
  return loadCode(std::move(*engine), options);
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

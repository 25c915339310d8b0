/// \file
/// From the MODEL argument of a command to an engine that runs.
#ifndef LATHE_TOOLS_LATHE_OPENMODEL_H
#define LATHE_TOOLS_LATHE_OPENMODEL_H

#include "runtime/engine/Engine.h"
#include "runtime/schedule/LoadedEngine.h"
#include "runtime/text/Tokenizer.h"
#include "tools/lathe/Command.h"

#include <memory>
#include <string>
#include <vector>

namespace lathe::tools {

/// The options by which commands that execute a model open it.
struct ModelOptions {
  std::string isa;     ///< Empty: the best that fits.
  std::string kvDtype; ///< Empty: not given; a model file gets f16.
  bool trustCode = false;
  /// Optional phases to leave out when a model file is compiled; no option of
  /// the command line.
  std::vector<std::string> disabledPhases;

  /// Declares them on a command.
  void addTo(CLI::App &command);
};

/// Opens an engine, or a model file's engine (compiled on first use). Warns if
/// an engine has another KV type than the one that is asked for. Errors: those
/// of findModel, Engine::open and openCached; InvalidInput (phases are
/// disabled, but it is an engine; an unknown ISA), Environment (this CPU cannot
/// run it).
Result<std::shared_ptr<const runtime::Engine>>
openEngine(const std::string &model, const ModelOptions &options);

/// The engine's code, loaded. Where none fits this CPU or its maker is not
/// accepted, the code is built anew from the engine's IR, with a notice, if the
/// compiler is there.
Result<std::shared_ptr<const runtime::LoadedEngine>>
loadCode(const std::shared_ptr<const runtime::Engine> &engine,
         const ModelOptions &options);

/// openEngine() and loadCode().
Result<std::shared_ptr<const runtime::LoadedEngine>>
loadModel(const std::string &model, const ModelOptions &options);

/// The tokenizer of an engine or model file; executes and compiles nothing.
Result<runtime::Tokenizer> openTokenizer(const std::string &model);

/// The tokenizer of an open engine.
Result<runtime::Tokenizer> tokenizerOf(const runtime::Engine &engine);

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_OPENMODEL_H

/// \file
/// lathe inspect: what is in an engine file. Executes nothing of it.

#include "kernels/formats/Format.h"
#include "runtime/device/CpuFeatures.h"
#include "runtime/device/Memory.h"
#include "runtime/engine/Validate.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Command.h"
#include "tools/lathe/EngineTables.h"
#include "tools/lathe/Places.h"
#include "tools/lathe/Signer.h"
#include "tools/lathe/Terminal.h"

#include <algorithm>
#include <memory>

using namespace lathe;
using namespace lathe::tools;
using runtime::displayPath;
using runtime::Engine;
using runtime::formatBytes;
using Json = nlohmann::ordered_json;

namespace {

struct Options {
  std::string engine;
  std::string target;
  std::string phase;
  std::string kernel;
  CLI::Option *ir = nullptr;
  CLI::Option *kernels = nullptr;
  bool weights = false;
  bool memory = false;
  bool targets = false;
  bool json = false;
};

/// The target that --target names, or the engine's first.
Result<uint32_t> targetOf(const Engine &engine, const std::string &name) {
  const auto &targets = *engine.manifest().targets();
  std::string known;
  for (uint32_t i = 0; i < targets.size(); ++i) {
    std::string_view own = runtime::viewOf(targets[i]->name());
    if (name.empty() || name == own || "cpu:" + name == own)
      return i;
    known += (known.empty() ? "" : ", ") + std::string(own);
  }
  return fail(ErrorKind::NotFound, "{}: has no target {}; it has {}",
              displayPath(engine.path()), runtime::quoted(name), known);
}

Result<int> showIr(const Engine &engine, const Options &options) {
  if (options.phase.empty()) {
    std::vector<std::string> phases = engine.phases();
    if (options.json)
      printJson({{"phases", phases}});
    else
      for (const std::string &phase : phases)
        printOut("{}\n", printable(phase));
    return exitDone;
  }
  auto text = engine.ir(options.phase);
  if (!text)
    return failFrom(text);
  if (options.json)
    printJson({{"phase", options.phase}, {"ir", *text}});
  else
    write(printable(*text));
  return exitDone;
}

/// The part of a target's printed sources that is the kernel `symbol`: from the
/// comment before it to the line that closes it.
Result<std::string> sourceOf(const std::string &sources,
                             std::string_view symbol) {
  std::string call = fmt::format(" {}(const StepArgs", symbol);
  size_t at = sources.find(call);
  if (at == std::string::npos)
    return fail(ErrorKind::InvalidInput,
                "the sources in the file do not define {}", symbol);
  size_t end = sources.find("\n}\n", at);
  end = end == std::string::npos ? sources.size() : end + 3;
  // Kernels are separated by empty lines.
  size_t begin = sources.rfind("\n\n", at);
  begin = begin == std::string::npos ? 0 : begin + 2;
  return sources.substr(begin, end - begin);
}

Result<int> showKernels(const Engine &engine, const Options &options) {
  auto target = targetOf(engine, options.target);
  if (!target)
    return failFrom(target);
  if (options.kernel.empty()) {
    printKernels(engine, *target, options.json);
    return exitDone;
  }
  auto symbol = findKernel(engine, *target, options.kernel);
  if (!symbol)
    return failFrom(symbol);
  auto sources = engine.sources(*target);
  if (!sources)
    return failFrom(sources);
  auto source = sourceOf(*sources, *symbol);
  if (!source)
    return failFrom(source, displayPath(engine.path()));
  if (options.json)
    printJson({{"kernel", *symbol}, {"source", *source}});
  else
    write(printable(*source));
  return exitDone;
}

Result<int> inspect(const Options &options) {
  auto path = findModel(options.engine);
  if (!path)
    return failFrom(path);
  auto engine = Engine::open(*path);
  if (!engine)
    return failFrom(engine);
  int views = int(options.ir->count() != 0) +
              int(options.kernels->count() != 0) + int(options.weights) +
              int(options.memory) + int(options.targets);
  if (views > 1)
    throw UsageError("one view at a time: --ir, --kernels, --weights, --memory "
                     "or --targets");
  if (options.ir->count() != 0)
    return showIr(**engine, options);
  if (options.kernels->count() != 0)
    return showKernels(**engine, options);
  if (options.weights)
    printWeights(**engine, options.json);
  else if (options.memory)
    printMemory(**engine, options.json);
  else if (options.targets)
    printTargets(**engine, options.json);
  else
    printOverview(**engine, options.json);
  return exitDone;
}

} // namespace

void tools::addInspect(const CommandLine &line) {
  auto options = std::make_shared<Options>();
  CLI::App *command =
      line.add("inspect", "Show what is in an engine; executes nothing of it",
               "  lathe inspect model.lathe\n"
               "  lathe inspect model.lathe --ir fuse-attention\n"
               "  lathe inspect model.lathe --kernels lathe_kernel_2");
  command->add_option("ENGINE", options->engine, "An engine file")->required();
  options->ir =
      command
          ->add_option("--ir", options->phase,
                       "The IR after a phase; without PHASE, the phases")
          ->expected(0, 1)
          ->type_name("[PHASE]");
  options->kernels =
      command
          ->add_option("--kernels", options->kernel,
                       "The kernels; with NAME or number, one's generated "
                       "source")
          ->expected(0, 1)
          ->type_name("[NAME]");
  command->add_flag("--weights", options->weights, "The weights");
  command->add_flag("--memory", options->memory,
                    "What a run needs: buffers and KV cache");
  command->add_flag("--targets", options->targets,
                    "The targets and their CPUs");
  command->add_option("--target", options->target,
                      "With --kernels: of this target (default: the first)");
  command->add_flag("--json", options->json, "Print it as JSON");
  line.onGiven(command, [options] { return inspect(*options); });
}

/// \file
/// lathe compile: a model file becomes an engine.

#include "runtime/device/Memory.h"
#include "runtime/support/KvTypeNames.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Checks.h"
#include "tools/lathe/Command.h"
#include "tools/lathe/CompilerLibrary.h"
#include "tools/lathe/Places.h"
#include "tools/lathe/Terminal.h"

#include <filesystem>
#include <memory>
#include <spdlog/spdlog.h>

using namespace lathe;
using namespace lathe::tools;
using codegen::CompileOptions;
using runtime::displayPath;
using runtime::formatBytes;

namespace {

struct Options {
  std::string model;
  CompileOptions compile;
  std::string kvDtype; ///< Empty: not given.
  bool printPipeline = false;
  bool json = false;
};

Result<int> printPipeline(const codegen::CompilerApi &compiler, bool json) {
  auto list = nlohmann::ordered_json::array();
  for (const codegen::PhaseInfo &phase : compiler.pipeline()) {
    if (json)
      list.push_back({{"number", phase.number},
                      {"name", phase.name},
                      {"mandatory", phase.mandatory},
                      {"summary", phase.summary}});
    else
      printOut("{:>2}  {:<20} {}{}\n", phase.number, phase.name, phase.summary,
               phase.mandatory ? " (cannot be disabled)" : "");
  }
  if (json)
    printJson(list);
  return exitDone;
}

void printSummary(const Options &options,
                  const codegen::CompileSummary &summary) {
  const std::string &output = options.compile.output;
  if (options.json && !options.compile.stopAfter.empty()) {
    printJson({{"output", output},
               {"ir_after", options.compile.stopAfter},
               {"seconds", summary.seconds}});
    return;
  }
  if (options.json) {
    printJson({{"output", output},
               {"tensors", summary.tensors},
               {"weight_bytes", summary.weightBytes},
               {"file_bytes", summary.fileBytes},
               {"kernels", summary.kernels},
               {"targets", summary.targets},
               {"seconds", summary.seconds}});
    return;
  }
  if (!options.compile.stopAfter.empty()) {
    printOut("{}: the IR after {}, {:.1f} s\n", displayPath(output),
             options.compile.stopAfter, summary.seconds);
    return;
  }
  printOut("{}: {}, {} of weights, {} for {}, {} in all, {:.1f} s\n",
           displayPath(output), counted(summary.tensors, "tensor"),
           formatBytes(summary.weightBytes), counted(summary.kernels, "kernel"),
           fmt::join(summary.targets, ", "), formatBytes(summary.fileBytes),
           summary.seconds);
}

Result<void> prepareDirectory(const std::string &path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    return fail(ErrorKind::Environment, "cannot make the directory {}: {}",
                displayPath(path), error.message());
  return {};
}

/// What was decided when a .mlir or an engine was made cannot be asked for.
Result<void> checkForInput(const Options &options, const std::string &model) {
  auto kind = kindOf(model);
  if (!kind)
    return failFrom(kind);
  const CompileOptions &compile = options.compile;
  bool ir = *kind == FileKind::Other && model.ends_with(".mlir");
  if (!compile.source.empty() && !ir)
    return fail(ErrorKind::InvalidInput,
                "--source says where the weights of a .mlir are; {} has its "
                "own",
                displayPath(model));
  if (*kind == FileKind::Gguf)
    return {};
  if (compile.context != 0)
    return fail(ErrorKind::InvalidInput,
                "--context has no effect: {} was made for its context; compile "
                "the model file",
                displayPath(model));
  if (*kind != FileKind::Engine)
    return {};
  for (const auto &[name, given] :
       {std::pair("--kv-dtype", !options.kvDtype.empty()),
        std::pair("--disable-pass", !compile.disabledPhases.empty())})
    if (given)
      return fail(ErrorKind::InvalidInput,
                  "{} has no effect: {} is compiled for other targets as it "
                  "was made; compile the model file",
                  name, displayPath(model));
  return {};
}

Result<int> compile(const std::shared_ptr<Options> &options) {
  auto compiler = loadCompiler();
  if (!compiler)
    return failFrom(compiler);
  if (options->printPipeline)
    return printPipeline(**compiler, options->json);
  if (options->model.empty())
    throw UsageError("MODEL is required");
  CompileOptions compile = options->compile;
  if (compile.output.empty())
    throw UsageError("-o is required");
  auto model = findModel(options->model);
  if (!model)
    return failFrom(model);
  if (auto fits = checkForInput(*options, *model); !fits)
    return failFrom(fits);
  if (!options->kvDtype.empty())
    compile.kvDtype = options->kvDtype;
  if (!compile.saveTemps.empty())
    if (auto made = prepareDirectory(compile.saveTemps); !made)
      return failFrom(made);

  Progress progress;
  compile.progress = [&](std::string_view what, uint64_t done, uint64_t total) {
    progress.update(what, done, total);
  };
  // Dumps go where errors go when standard output is for the JSON.
  compile.onIr = [&](std::string_view phase, std::string_view text) {
    progress.clear();
    std::string dump = fmt::format("// ---- after {} ----\n{}", phase, text);
    if (options->json)
      fmt::print(stderr, "{}", dump);
    else
      write(dump);
  };
  compile.onNotice = [&](std::string_view message) {
    progress.clear();
    spdlog::warn("{}", printable(message));
  };
  auto summary = (*compiler)->compile(*model, compile);
  progress.clear();
  if (!summary)
    return failFrom(summary);
  printSummary(*options, *summary);
  return exitDone;
}

} // namespace

void tools::addCompile(const CommandLine &line) {
  auto options = std::make_shared<Options>();
  CompileOptions &compileOptions = options->compile;
  CLI::App *command = line.add(
      "compile", "Compile a model file to an engine",
      "  lathe compile model.gguf -o model.lathe --target cpu:avx2 "
      "--target cpu:avx512\n"
      "  lathe compile model.gguf -o x.mlir --stop-after fuse-attention");
  command->add_option(
      "MODEL", options->model,
      "A GGUF model, IR (.mlir) that --stop-after wrote, an engine "
      "(for other targets), or a local model's name");
  command->add_option("-o,--output", compileOptions.output,
                      "Where the engine goes; with --stop-after, the IR");
  // One value each, so that options may stand before MODEL.
  command
      ->add_option("--target", compileOptions.targets,
                   "cpu:native (default), cpu:generic, cpu:avx2, cpu:avx512 "
                   "or cpu:avx512bf16; "
                   "may be given several times")
      ->allow_extra_args(false);
  command->add_flag("--print-pipeline", options->printPipeline,
                    "List the phases and end");
  command
      ->add_option("--print-ir-after", compileOptions.printIrAfter,
                   "Print the IR after this phase, or after 'all'")
      ->allow_extra_args(false);
  command
      ->add_option("--disable-pass", compileOptions.disabledPhases,
                   "Leave out an optional phase")
      ->allow_extra_args(false);
  command->add_option("--stop-after", compileOptions.stopAfter,
                      "Stop after this phase and write its IR");
  command
      ->add_option("--load-pass-plugin", compileOptions.passPlugins,
                   "Load passes from this shared object, and run its code")
      ->allow_extra_args(false);
  command
      ->add_option("--add-pass", compileOptions.addedPasses,
                   "NAME@after:PHASE: run a plugin's pass behind a phase")
      ->allow_extra_args(false);
  command->add_flag("--strict", compileOptions.strict,
                    "Fail where a phase chose a slower path instead of telling "
                    "of it");
  command->add_flag("--check-passes", compileOptions.checkPasses,
                    "Interpret the graph before and after each pass, and stop "
                    "at the first that computes something else");
  command->add_option("--save-temps", compileOptions.saveTemps,
                      "Keep generated sources and objects in this directory");
  command->add_option("--source", compileOptions.source,
                      "The model file that the weights of a .mlir come from");
  command
      ->add_option("--context", compileOptions.context,
                   "Positions to cover (default: as trained)")
      ->check(wholeNumber(1, contextMax));
  command
      ->add_option("--kv-dtype", options->kvDtype, "Elements of the KV cache")
      ->check(CLI::IsMember(kvDtypeNames()))
      ->default_str("f16");
  command->add_flag("--json", options->json, "Print the summary as JSON");
  line.onGiven(command, [options] { return compile(options); });
}

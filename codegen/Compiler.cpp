#include "codegen/Compiler.h"

#include "codegen/EngineParts.h"
#include "codegen/ModelInput.h"
#include "codegen/PassChecker.h"
#include "codegen/SlowerPaths.h"
#include "codegen/StoredWeights.h"
#include "codegen/WeightStore.h"
#include "codegen/cpu/CpuTarget.h"
#include "codegen/engine/EngineWriter.h"
#include "passes/Pipeline.h"
#include "passes/PluginLoader.h"
#include "runtime/engine/TrustStore.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/KvTypeNames.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

using namespace mlir;
using namespace lathe;
using namespace lathe::codegen;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::Result;

namespace {

/// A pass that the user adds behind a phase.
struct AddedPass {
  std::string pipeline; ///< "name" or "name{options}".
  std::string name;
  const passes::Phase *after;
};

/// One compilation.
class Compilation {
public:
  Compilation(const std::string &input, const CompileOptions &options)
      : input(input), options(options) {
    DialectRegistry registry;
    passes::registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    // Errors of passes and the parser become this compilation's error.
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      report(diagnostic);
      return success();
    });
  }

  Result<CompileSummary> run() {
    auto start = std::chrono::steady_clock::now();
    if (auto ok = checkOptions(); !ok)
      return failFrom(ok);
    auto model = loadModel(context, input, options);
    if (!model)
      return diagnosed(failFrom(model));
    module = std::move(model->module);
    for (EngineIr &ir : model->earlierIr)
      dumps.push_back({std::move(ir.phase), std::move(ir.text)});
    if (!model->modelPath.empty())
      replayPhases(*model);
    if (options.checkPasses && model->engine)
      return fail(ErrorKind::Unsupported,
                  "{}: passes are checked from a model file or .mlir, not from "
                  "an engine",
                  input);
    if (options.checkPasses) {
      checkedWeights.emplace(WeightStore(model->sources));
      checker.emplace(*checkedWeights, options.output);
    }
    if (auto ok = runPhases(); !ok)
      return failFrom(ok);
    if (options.strict && !slowerPaths.empty())
      return fail(ErrorKind::Unsupported,
                  "{}: refused by --strict, since slower paths were chosen: {}",
                  input, slowerPaths.list());
    CompileSummary summary;
    if (options.stopAfter.empty()) {
      auto written = writeOut(*model);
      if (!written)
        return failFrom(written);
      summary = *written;
    } else if (auto ok = writeText(textOf(*module)); !ok) {
      return failFrom(ok);
    }
    summary.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    return summary;
  }

  Result<EngineSizes> measure() {
    if (auto ok = checkOptions(); !ok)
      return failFrom(ok);
    auto model = loadHeader(context, input, options);
    if (!model)
      return diagnosed(failFrom(model));
    module = std::move(model->module);
    keepsDumps = false;
    if (auto ok = runPhases(); !ok)
      return failFrom(ok);
    WeightStore store(model->sources);
    auto weights = placeWeights(*module, store, nullptr);
    if (!weights)
      return failFrom(weights, input);
    return sizesOf(*module, *weights);
  }

private:
  static EngineSizes sizesOf(ModuleOp module, const PlacedWeights &weights) {
    EngineSizes sizes;
    sizes.parameters = weights.parameters;
    sizes.weightBytes = weights.bytes;
    auto facts =
        module->getAttrOfType<ir::ModelAttr>(ir::LatheDialect::modelAttrName);
    runtime::StepProgram &program = sizes.program;
    program.vocab = static_cast<u32>(facts.getVocab());
    program.hidden = static_cast<u32>(facts.getHidden());
    program.context = static_cast<u32>(facts.getPositions());
    for (const engine::fb::KvGroupT &group : describeGroups(module))
      program.groups.push_back({.window = group.window,
                                .pageBytes = group.page_bytes,
                                .kvHeads = group.kv_heads});
    program.kv = !program.groups.empty();
    engine::fb::ProgramT described =
        describeProgram(module, cpuTargetInfo(), weights.offsets);
    for (const engine::fb::Size &size : described.slots)
      program.slots.push_back({.rows = size.t(),
                               .sequences = size.s(),
                               .partials = size.c(),
                               .threads = size.n(),
                               .constant = size.e()});
    program.attentionChunk = described.attention_chunk;
    program.attentionRowTile = described.attention_row_tile;
    return sizes;
  }

  /// The IR of the phases before a dumped .mlir, so that compiling it on gives
  /// the very engine that its model file gives; none if it was edited or dumped
  /// with other options.
  void replayPhases(const ModelInput &model) {
    auto phase =
        (*module)->getAttrOfType<StringAttr>(ir::LatheDialect::phaseAttrName);
    auto facts = (*module)->getAttrOfType<ir::ModelAttr>(
        ir::LatheDialect::modelAttrName);
    if (!phase || !facts)
      return;
    CompileOptions again = options;
    again.context = facts.getPositions();
    again.stopAfter = phase.getValue().str();
    again.checkPasses = false;
    again.progress = nullptr;
    again.onIr = nullptr;
    again.onNotice = nullptr;
    Compilation earlier(model.modelPath, again);
    auto loaded = loadModel(earlier.context, earlier.input, earlier.options);
    if (!loaded || !earlier.checkOptions())
      return;
    earlier.module = std::move(loaded->module);
    if (earlier.runPhases() && !earlier.dumps.empty() &&
        earlier.dumps.back().second == model.text) {
      dumps = std::move(earlier.dumps);
      slowerPaths = std::move(earlier.slowerPaths);
    }
  }

  void report(Diagnostic &diagnostic) {
    std::string label = labelOf(diagnostic.getLocation());
    if (diagnostic.getSeverity() == DiagnosticSeverity::Remark) {
      if (!isChecking)
        slowerPaths.add(std::move(label), diagnostic.str());
      return;
    }
    std::string text = (label.empty() ? "" : label + ": ") + diagnostic.str();
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      messages += (messages.empty() ? "" : "; ") + text;
    else if (options.onNotice)
      options.onNotice(text);
  }

  /// Tells what the latest pass has remarked; with `strict` an error will.
  void tellSlowerPaths() {
    if (!options.onNotice || options.strict)
      return;
    for (const std::string &line : slowerPaths.takeNew())
      options.onNotice(line);
  }

  /// An error with what MLIR has reported.
  tl::unexpected<runtime::Error> diagnosed(tl::unexpected<runtime::Error> e) {
    if (!messages.empty())
      e.value().message += ": " + messages;
    return e;
  }

  Result<void> checkOptions() {
    auto known = [](std::string_view name) -> Result<const passes::Phase *> {
      if (const passes::Phase *phase = passes::findPhase(name))
        return phase;
      std::string names;
      for (const passes::Phase &phase : passes::phases())
        names += (names.empty() ? "" : ", ") + std::string(phase.name);
      return fail(ErrorKind::InvalidInput, "unknown phase '{}'; known are {}",
                  name, names);
    };
    for (const std::string &name : options.disabledPhases) {
      auto phase = known(name);
      if (!phase)
        return failFrom(phase);
      if ((*phase)->mandatory)
        return fail(ErrorKind::InvalidInput,
                    "phase '{}' cannot be disabled: no engine can be made "
                    "without it",
                    name);
    }
    for (const std::string &name : options.printIrAfter)
      if (name != "all")
        if (auto phase = known(name); !phase)
          return failFrom(phase);
    if (!options.stopAfter.empty())
      if (auto phase = known(options.stopAfter); !phase)
        return failFrom(phase);
    for (const std::string &path : options.passPlugins)
      if (auto ok = passes::loadPassPlugin(path); !ok)
        return ok;
    for (const std::string &text : options.addedPasses)
      if (auto ok = addPass(text); !ok)
        return ok;
    for (const std::string &path : {input, options.source}) {
      std::error_code error;
      if (!path.empty() &&
          std::filesystem::equivalent(path, options.output, error))
        return fail(ErrorKind::InvalidInput,
                    "{} is read and must not be written over; give another "
                    "output",
                    options.output);
    }
    if (!kvTypeFromName(options.kvDtype))
      return fail(ErrorKind::InvalidInput,
                  "unknown KV dtype '{}'; known are f16, bf16, f32, int8",
                  options.kvDtype);
    std::vector<std::string> names = options.targets;
    if (names.empty())
      names.emplace_back("cpu:native");
    for (const std::string &name : names) {
      auto isa = isaOfTarget(name);
      if (!isa)
        return failFrom(isa);
      if (!llvm::is_contained(isas, *isa))
        isas.push_back(*isa);
    }
    return {};
  }

  /// Replaces "native" by the layer that suits the weights and this CPU.
  void resolveNative(const std::vector<EngineWeight> &weights) {
    bool bf16 = llvm::any_of(weights, [](const EngineWeight &weight) {
      return weight.layout == "r16" && weight.format == kernels::Format::BF16;
    });
    std::string own(runtime::CpuFeatures::detect().bestIsaFor(bf16));
    bool given = llvm::is_contained(isas, own);
    auto native = llvm::find(isas, "native");
    if (native != isas.end() && given)
      isas.erase(native);
    else if (native != isas.end())
      *native = own;
  }

  /// Parses "NAME@after:PHASE".
  Result<void> addPass(const std::string &text) {
    constexpr std::string_view marker = "@after:";
    size_t at = text.rfind(marker);
    if (at == std::string::npos || at == 0)
      return fail(ErrorKind::InvalidInput,
                  "cannot add pass '{}': expected NAME@after:PHASE", text);
    AddedPass added;
    added.pipeline = text.substr(0, at);
    added.name = added.pipeline.substr(0, added.pipeline.find('{'));
    std::string phase = text.substr(at + marker.size());
    added.after = passes::findPhase(phase);
    if (!added.after)
      return fail(ErrorKind::InvalidInput,
                  "cannot add pass '{}': no phase is called '{}' (see "
                  "--print-pipeline)",
                  added.name, phase);
    if (!PassInfo::lookup(added.name) && !PassPipelineInfo::lookup(added.name))
      return fail(ErrorKind::NotFound,
                  "no pass is called '{}'; is its plugin loaded?", added.name);
    addedPasses.push_back(std::move(added));
    return {};
  }

  static std::string textOf(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream, OpPrintingFlags().enableDebugInfo());
    text += '\n';
    return text;
  }

  Result<void> writeText(std::string_view text) {
    auto file = runtime::AtomicFile::create(options.output);
    if (!file)
      return failFrom(file);
    auto written = file->append(
        {reinterpret_cast<const uint8_t *>(text.data()), text.size()});
    return written ? file->commit() : written;
  }

  bool disabled(std::string_view phase) const {
    return llvm::is_contained(options.disabledPhases, phase);
  }

  /// The cache needs every attention fused: without that, the engine recomputes
  /// the whole sequence each step.
  bool canRun(const passes::Phase &phase) {
    if (phase.name != "kv-cache-layout" || !disabled("fuse-attention"))
      return true;
    emitRemark(module->getLoc())
        << "kv-cache-layout is left out, because fuse-attention is";
    tellSlowerPaths();
    return false;
  }

  /// What is to be seen of a .mlir's phases must be ahead of `last`, which it
  /// has seen. (--disable-pass may say how it was made.)
  Result<void> checkAhead(const passes::Phase &last) const {
    if (!input.ends_with(".mlir"))
      return {};
    auto asked = options.printIrAfter;
    asked.push_back(options.stopAfter);
    for (const std::string &name : asked)
      if (const passes::Phase *phase = passes::findPhase(name);
          phase && phase <= &last)
        return fail(ErrorKind::InvalidInput,
                    "{}: is the IR after {} already, so there is none after {} "
                    "to show or write",
                    input, last.name, name);
    return {};
  }

  /// Runs the phases behind the one that the module has seen last.
  Result<void> runPhases() {
    passes::PipelineOptions pipelineOptions;
    pipelineOptions.kvDtype = options.kvDtype;
    pipelineOptions.target = cpuTargetInfo();
    std::span<const passes::Phase> all = passes::phases();
    size_t first = 0;
    if (auto seen = (*module)->getAttrOfType<StringAttr>(
            ir::LatheDialect::phaseAttrName)) {
      const passes::Phase *phase = passes::findPhase(seen.getValue());
      if (!phase)
        return fail(ErrorKind::InvalidInput,
                    "{}: 'lathe.phase' names an unknown phase '{}'", input,
                    seen.getValue().str());
      first = static_cast<size_t>(phase - all.data()) + 1;
      if (auto ahead = checkAhead(*phase); !ahead)
        return ahead;
    }
    if (checker && !hasGraph())
      return fail(ErrorKind::Unsupported,
                  "{}: passes are checked on the graph, which IR of this phase "
                  "no longer has; give the model or IR of an earlier phase",
                  input);
    if (checker)
      if (auto ok = checker->start(*module); !ok)
        return diagnosed(failFrom(ok, input));
    for (size_t i = first; i < all.size(); ++i) {
      const passes::Phase &phase = all[i];
      if (options.progress)
        options.progress(phase.name, i, all.size());
      if (!disabled(phase.name) && canRun(phase)) {
        auto ok = runPass(phase.name, [&](OpPassManager &manager) {
          manager.addPass(phase.create(pipelineOptions));
          return success();
        });
        if (!ok)
          return ok;
      }
      for (const AddedPass &added : addedPasses) {
        if (added.after != &phase)
          continue;
        auto ok = runPass(added.name, [&](OpPassManager &manager) {
          return parsePassPipeline(added.pipeline, manager);
        });
        if (!ok)
          return ok;
      }
      (*module)->setAttr(ir::LatheDialect::phaseAttrName,
                         StringAttr::get(&context, phase.name));
      if (!keepsDumps)
        continue;
      std::string text = textOf(*module);
      if (options.onIr &&
          (llvm::is_contained(options.printIrAfter, "all") ||
           llvm::is_contained(options.printIrAfter, std::string(phase.name))))
        options.onIr(phase.name, text);
      dumps.push_back({std::string(phase.name), std::move(text)});
      if (phase.name == options.stopAfter)
        return {};
    }
    return {};
  }

  /// Whether the module still is a graph, which the interpreter runs.
  bool hasGraph() {
    return module->lookupSymbol<func::FuncOp>("body") != nullptr;
  }

  /// Runs a pass on the module and checks what it did.
  Result<void>
  runPass(std::string_view name,
          const std::function<LogicalResult(OpPassManager &)> &add) {
    auto run = [&](ModuleOp target) {
      PassManager manager(&context, ModuleOp::getOperationName(),
                          OpPassManager::Nesting::Implicit);
      return success(succeeded(add(manager)) && succeeded(manager.run(target)));
    };
    LogicalResult result = run(*module);
    tellSlowerPaths();
    if (failed(result))
      return diagnosed(
          fail(ErrorKind::InvalidInput, "{}: pass {} failed", input, name));
    if (!checker)
      return {};
    if (!hasGraph()) {
      uncheckedPasses += (uncheckedPasses.empty() ? "" : ", ");
      uncheckedPasses += name;
      return {};
    }
    if (options.progress)
      options.progress("check " + std::string(name), 0, 0);
    isChecking = true;
    auto checked = checker->check(*module, name, run);
    isChecking = false;
    if (!checked)
      return diagnosed(failFrom(checked, input));
    return {};
  }

  Result<CompileSummary> writeOut(const ModelInput &model) {
    WeightStore store(model.sources);
    EngineDescription engine;
    engine.producer = "lathe " LATHE_VERSION;
    auto facts = (*module)->getAttrOfType<ir::ModelAttr>(
        ir::LatheDialect::modelAttrName);
    if (!facts)
      return fail(ErrorKind::InvalidInput,
                  "{}: the module has no 'lathe.model' attribute", input);
    if (auto ok = checkModel(*module, facts); !ok)
      return failFrom(ok, input);
    for (auto program : module->getOps<ir::ProgramOp>())
      if (failed(passes::checkPlan(program)) ||
          failed(passes::checkWanted(program)))
        return diagnosed(fail(ErrorKind::InvalidInput,
                              "{}: its program cannot run as it is planned",
                              input));
    auto weights = placeWeights(*module, store, model.engine.get());
    if (!weights)
      return failFrom(weights, input);
    const WeightOffsets &offsets = weights->offsets;
    engine.model = describeModel(facts);
    engine.model.parameters = weights->parameters;
    engine.weights = std::move(weights->weights);
    engine.kvGroups = describeGroups(*module);
    CompileSummary summary;
    summary.tensors = engine.weights.size();
    engine.programs.push_back(
        describeProgram(*module, cpuTargetInfo(), offsets));
    summary.kernels = engine.programs.front().kernels.size();
    resolveNative(engine.weights);
    for (size_t i = 0; i < isas.size(); ++i) {
      if (options.progress)
        options.progress("compile cpu:" + isas[i], i, isas.size());
      auto target = compileForCpu(*module, offsets, isas[i], options.saveTemps);
      if (!target)
        return failFrom(target);
      summary.targets.push_back(target->name);
      engine.targets.push_back(std::move(*target));
    }
    for (auto &[phase, text] : dumps)
      engine.ir.push_back({phase, std::move(text)});
    engine.sources = describeSources(model.files);
    engine.options = {"kv=" + options.kvDtype,
                      "context=" + std::to_string(facts.getPositions())};
    for (const std::string &name : options.disabledPhases)
      engine.options.push_back("disable=" + name);
    for (const std::string &text : options.addedPasses)
      engine.options.push_back("add=" + text);
    engine.tokenizer = model.tokenizer;

    WriteOptions writeOptions;
    std::optional<runtime::SigningKey> key;
    if (options.sign) {
      auto own = runtime::TrustStore::ofUser().and_then(
          [](const runtime::TrustStore &trust) { return trust.ownKey(); });
      if (own)
        key = std::move(*own);
      else if (options.onNotice)
        options.onNotice("the engine is not signed: " + own.error().message);
      writeOptions.signer = key ? &*key : nullptr;
    }
    writeOptions.progress = [&](std::string_view, uint64_t done,
                                uint64_t total) {
      if (options.progress)
        options.progress("write", done, total);
    };
    std::string path = options.output + (checker ? ".unchecked" : "");
    auto written = writeEngine(path, engine, writeOptions);
    if (!written)
      return failFrom(written);
    if (auto ok = checkWritten(path); !ok)
      return failFrom(ok);
    summary.weightBytes = written->weightBytes;
    summary.fileBytes = written->fileBytes;
    return summary;
  }

  /// An engine that has to be checked gets its name only if it is right.
  Result<void> checkWritten(const std::string &path) {
    if (!checker)
      return {};
    if (options.progress)
      options.progress("check the engine", 0, 0);
    auto ok = checker->checkEngine(path, uncheckedPasses);
    std::error_code error;
    if (!ok) {
      std::filesystem::remove(path, error);
      return diagnosed(failFrom(ok, input));
    }
    std::filesystem::rename(path, options.output, error);
    if (error)
      return fail(ErrorKind::Environment, "{}: cannot rename it to {}: {}",
                  path, options.output, error.message());
    return {};
  }

  const std::string &input;
  CompileOptions options;
  MLIRContext context;
  std::string messages;
  SlowerPaths slowerPaths;
  /// Passes are run again to find what a wrong one does.
  bool isChecking = false;
  OwningOpRef<ModuleOp> module;
  std::vector<std::string> isas;
  std::vector<std::pair<std::string, std::string>> dumps;
  bool keepsDumps = true;
  std::vector<AddedPass> addedPasses;
  std::optional<StoredWeights> checkedWeights;
  std::optional<PassChecker> checker;
  /// Passes below the graph, which only the engine can be checked for.
  std::string uncheckedPasses;
};

} // namespace

Result<CompileSummary> codegen::compile(const std::string &input,
                                        const CompileOptions &options) {
  return Compilation(input, options).run();
}

Result<EngineSizes> codegen::measure(const std::string &input,
                                     const CompileOptions &options) {
  CompileOptions own;
  own.disabledPhases = options.disabledPhases;
  own.context = options.context;
  own.kvDtype = options.kvDtype;
  own.onNotice = options.onNotice;
  return Compilation(input, own).measure();
}

std::vector<PhaseInfo> codegen::pipeline() {
  std::vector<PhaseInfo> result;
  for (const passes::Phase &phase : passes::phases())
    result.push_back({phase.number, std::string(phase.name),
                      std::string(phase.summary), phase.mandatory});
  return result;
}

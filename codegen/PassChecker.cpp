#include "codegen/PassChecker.h"

#include "codegen/ReducedModule.h"
#include "runtime/schedule/LoadedEngine.h"
#include "runtime/schedule/Session.h"
#include "runtime/support/AtomicFile.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>

using namespace mlir;
using namespace lathe;
using namespace lathe::codegen;
using lathe::ir::nmse;
using lathe::ir::Tensor;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::Result;

namespace {

/// Whether activations are rounded to int8. Then a rounding of f32 that goes
/// the other way can move a whole step of 1/127 of a block's largest value, and
/// layer by layer that grows: measured 2e-3 for Gemma 3 270M.
bool roundsActivations(ModuleOp module) {
  return module
      ->walk([](ir::QuantizeRowsOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// What a pass may change, as a normalized squared error. Most passes only
/// reorder roundings of f32, which adds about 1e-13.
double boundOf(std::string_view pass, ModuleOp after) {
  // Measured 1.5e-3 for Gemma 3 270M.
  if (pass == "quantize-activations")
    return 2e-2;
  // Keys and values rounded to f16.
  if (pass == "kv-cache-layout")
    return roundsActivations(after) ? 1e-2 : 1e-5;
  return 1e-9;
}

/// Between an engine and its graph: other roundings of f32, also before those
/// to f16.
double engineBound(ModuleOp graph) {
  return roundsActivations(graph) ? 1e-2 : 1e-6;
}

/// The same tokens each time, all over the vocabulary.
std::vector<int32_t> seededTokens(ModuleOp module) {
  int64_t vocab = 1, positions = 1;
  if (auto model = module->getAttrOfType<ir::ModelAttr>(
          ir::LatheDialect::modelAttrName)) {
    vocab = std::max<int64_t>(1, model.getVocab());
    positions = model.getPositions();
  }
  std::vector<int32_t> tokens;
  uint64_t state = 1;
  for (int64_t i = 0; i < std::min<int64_t>(6, positions); ++i) {
    // Knuth's MMIX generator; its high bits are the random ones.
    state = state * 6364136223846793005u + 1442695040888963407u;
    tokens.push_back(
        static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(vocab)));
  }
  return tokens;
}

std::vector<std::string> namesOf(const Trace::Entry &entry) {
  std::vector<std::string> names = codegen::namesOf(entry.op->getLoc());
  // A merged op has one name per result.
  if (entry.op->getNumResults() > 1 &&
      names.size() == entry.op->getNumResults())
    return {names[entry.result]};
  return names;
}

/// Finds the values of one trace in another.
class Matcher {
public:
  Matcher(const Trace &trace, double bound) : trace(trace), bound(bound) {
    for (auto [index, entry] : llvm::enumerate(trace.entries))
      for (const std::string &name : namesOf(entry))
        byName[name].push_back(index);
  }

  /// Whether the trace has the value: at the same place in the model, or, if
  /// nothing of its shape is there, anywhere.
  bool has(const Trace::Entry &entry) const {
    bool comparable = false;
    for (const std::string &name : namesOf(entry))
      for (size_t index : at(name)) {
        const Tensor &candidate = trace.entries[index].tensor;
        comparable |= candidate.shape() == entry.tensor.shape();
        if (nmse(entry.tensor, candidate) <= bound)
          return true;
      }
    return !comparable &&
           llvm::any_of(trace.entries, [&](const Trace::Entry &candidate) {
             return nmse(entry.tensor, candidate.tensor) <= bound;
           });
  }

  ArrayRef<size_t> at(StringRef name) const {
    auto found = byName.find(name);
    if (found == byName.end())
      return {};
    return found->second;
  }

private:
  const Trace &trace;
  double bound;
  llvm::StringMap<std::vector<size_t>> byName;
};

/// The first op, in program order, that makes a wrong value of right ones, on
/// the way to what `function` returns.
Operation *firstWrong(const Trace &after, const Matcher &before,
                      func::FuncOp function) {
  llvm::DenseMap<size_t, bool> known;
  auto isWrong = [&](Value value) {
    auto found = after.indexOf.find(value);
    if (found == after.indexOf.end())
      return false;
    auto [slot, isNew] = known.try_emplace(found->second, false);
    if (isNew)
      slot->second = !before.has(after.entries[found->second]);
    return slot->second;
  };
  Operation *root = function.getBody().front().getTerminator(), *first = root;
  DenseSet<Operation *> seen;
  SmallVector<Operation *> pending = {root};
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (!seen.insert(op).second)
      continue;
    bool wrongInput = false;
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (!producer)
        continue;
      // A batch hands on what was appended to it.
      bool follow = isa<ir::BatchType>(operand.getType()) || isWrong(operand);
      wrongInput |= follow && isWrong(operand);
      if (follow)
        pending.push_back(producer);
    }
    bool wrong = llvm::any_of(op->getResults(), isWrong);
    if (wrong && !wrongInput && (first == root || op->isBeforeInBlock(first)))
      first = op;
  }
  return first;
}

/// The op of the trace before that computes what `wrong` should.
Operation *counterpart(const Trace &before, const Trace &after,
                       const Matcher &beforeIndex, double bound,
                       Operation *wrong) {
  if (auto ret = dyn_cast<func::ReturnOp>(wrong)) {
    auto function = before.entries.front()
                        .op->getParentOfType<ModuleOp>()
                        .lookupSymbol<func::FuncOp>(
                            ret->getParentOfType<func::FuncOp>().getSymName());
    return function.getBody()
        .front()
        .getTerminator()
        ->getOperand(0)
        .getDefiningOp();
  }
  Matcher afterIndex(after, bound);
  SmallVector<Operation *> samePlace, sameKind;
  for (const std::string &name : codegen::namesOf(wrong->getLoc()))
    for (size_t index : beforeIndex.at(name)) {
      const Trace::Entry &entry = before.entries[index];
      // What the pass has lost.
      if (!afterIndex.has(entry)) {
        samePlace.push_back(entry.op);
        if (entry.op->getName() == wrong->getName())
          sameKind.push_back(entry.op);
      }
    }
  if (!sameKind.empty())
    return sameKind.front();
  return samePlace.empty() ? nullptr : samePlace.back();
}

/// Whether a pass changes what a reduced module computes.
bool reproduces(const ReducedModule &reduced, const Trace &trace,
                ir::WeightProvider &weights, double bound,
                const std::function<LogicalResult(ModuleOp)> &run) {
  ModuleOp module = *reduced.module;
  // Trying it may go wrong; that is no error of the compilation.
  ScopedDiagnosticHandler quiet(module.getContext(),
                                [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> changed = module.clone();
  if (failed(run(*changed)))
    return false;
  std::vector<Tensor> inputs;
  for (Value value : reduced.inputs) {
    const Tensor *tensor = trace.find(value);
    if (!tensor)
      return false;
    inputs.push_back(*tensor);
  }
  auto rows = codegen::rowsFrom(0, static_cast<size_t>(trace.hidden.dim(0)));
  auto evaluate = [&](ModuleOp which) {
    ir::Interpreter interpreter(which, weights);
    ir::KvStore store;
    return ir::isStepForm(which)
               ? interpreter.runStep(reduced.function, inputs, rows, store)
               : interpreter.run(reduced.function, inputs);
  };
  auto right = evaluate(module), wrong = evaluate(*changed);
  if (failed(right) || failed(wrong) || right->size() != wrong->size())
    return succeeded(right);
  for (auto [a, b] : llvm::zip(*wrong, *right))
    if (!(nmse(a, b) <= bound))
      return true;
  return false;
}

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, OpPrintingFlags().enableDebugInfo());
  return text + "\n";
}

std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "an op without a name" : text;
}

} // namespace

Result<PassChecker::Snapshot> PassChecker::snapshot(ModuleOp module,
                                                    const Tensor *headInput) {
  // A copy, since the next pass rewrites the module.
  Snapshot made;
  made.module = module.clone();
  FailureOr<Trace> trace =
      traceModule(*made.module, weights, tokens, headInput);
  if (failed(trace))
    return fail(ErrorKind::InvalidInput,
                "the interpreter cannot run the graph");
  made.trace = std::move(*trace);
  return made;
}

Result<void> PassChecker::start(ModuleOp module) {
  tokens = seededTokens(module);
  auto made = snapshot(module, nullptr);
  if (!made)
    return failFrom(made);
  before = std::move(*made);
  return {};
}

Result<void>
PassChecker::check(ModuleOp module, std::string_view pass,
                   const std::function<LogicalResult(ModuleOp)> &run) {
  // The head gets the same rows as before, so that an error of the body is not
  // taken for one of the head.
  auto after = snapshot(module, &before.trace.hidden);
  if (!after)
    return failFrom(after, "after pass '" + std::string(pass) + "'");
  double bound = boundOf(pass, module);
  double error = nmse(after->trace.hidden, before.trace.hidden);
  // The head's own input, for a head that has not changed.
  if (error <= bound)
    error = nmse(after->trace.logits, before.trace.logits);
  if (!(error <= bound))
    return fail(ErrorKind::Internal,
                "pass '{}' changes what the model computes, by {:.2g} (squared "
                "error / power) where {:.2g} is allowed: {}",
                pass, error, bound, explain(*after, pass, bound, run));
  if (after->trace.step && tokens.size() > 3) {
    auto hidden =
        hiddenBySteps(module, weights, tokens, {1, 2, tokens.size() - 3});
    if (failed(hidden))
      return fail(ErrorKind::Internal,
                  "after pass '{}' the graph does not run in several steps",
                  pass);
    if (double off = nmse(*hidden, after->trace.hidden); !(off <= 1e-12))
      return fail(ErrorKind::Internal,
                  "after pass '{}' the graph computes something else when the "
                  "tokens come in several steps: it differs by {:.2g}",
                  pass, off);
  }
  before = std::move(*after);
  return {};
}

std::string
PassChecker::explain(const Snapshot &after, std::string_view pass, double bound,
                     const std::function<LogicalResult(ModuleOp)> &run) {
  bool inBody = !(nmse(after.trace.hidden, before.trace.hidden) <= bound);
  StringRef name = inBody ? "body" : "head";
  ModuleOp changed = *after.module;
  auto function = changed.lookupSymbol<func::FuncOp>(name);
  Matcher beforeIndex(before.trace, bound);
  Operation *wrong = firstWrong(after.trace, beforeIndex, function);
  std::string place = joined(codegen::namesOf(wrong->getLoc()));
  std::string text =
      fmt::format("the first op that gives other values is {} at {} in @{}",
                  wrong->getName().getStringRef().str(), place, name.str());

  // The smallest module on which the pass goes wrong in the same way.
  Operation *root =
      counterpart(before.trace, after.trace, beforeIndex, bound, wrong);
  ReducedModule reduced;
  constexpr Reduction reductions[] = {
      {true, false}, {true, true}, {false, true}};
  for (Reduction reduction : reductions) {
    if (!root)
      break;
    reduced = reduceTo(root, reduction);
    if (reproduces(reduced, before.trace, weights, bound, run))
      break;
    reduced = {};
  }
  std::string path = outputStem + "." + std::string(pass) + ".mlir";
  std::string dump =
      fmt::format("// Pass '{}' changes what this computes: {}.\n", pass, text);
  dump += textOf(reduced.module ? *reduced.module : *before.module);
  auto file = runtime::AtomicFile::create(path);
  Result<void> written =
      file ? file->append(
                 {reinterpret_cast<const uint8_t *>(dump.data()), dump.size()})
           : Result<void>(failFrom(file));
  if (written)
    written = file->commit();
  if (!written)
    return text + "; the reduced module could not be written: " +
           written.error().message;
  return text + (reduced.module ? "; reduced: " : "; the module before it: ") +
         path;
}

Result<void> PassChecker::checkEngine(const std::string &path,
                                      std::string_view phases) {
  FailureOr<Trace> trace =
      traceModule(*before.module, weights, tokens, nullptr);
  if (failed(trace))
    return fail(ErrorKind::InvalidInput,
                "the interpreter cannot run the graph");
  // The compiler has made this engine, just now, from the user's own model.
  runtime::OpenOptions open;
  open.trustCode = true;
  auto engine = runtime::Engine::open(path, open);
  if (!engine)
    return failFrom(engine);
  double bound = engineBound(*before.module);
  for (const auto *target : *(*engine)->manifest().targets()) {
    std::string name = target->name()->str();
    std::string isa = name.substr(name.find(':') + 1);
    auto loaded = runtime::LoadedEngine::load(*engine, isa);
    // A target for another CPU cannot be tried here.
    if (!loaded && loaded.error().kind == ErrorKind::Environment)
      continue;
    if (!loaded)
      return failFrom(loaded);
    runtime::SessionOptions options;
    options.context = static_cast<uint32_t>(tokens.size());
    auto session = runtime::Session::create(*loaded, options);
    if (!session)
      return failFrom(session);
    std::vector<float> rows;
    auto ran = (*session)->append(
        tokens, 0, [&](uint32_t, std::span<const float> logits) {
          rows.insert(rows.end(), logits.begin(), logits.end());
        });
    if (!ran)
      return failFrom(ran);
    double error =
        nmse(Tensor::floats(trace->logits.shape(), rows), trace->logits);
    if (!(error <= bound))
      return fail(ErrorKind::Internal,
                  "the engine's {} computes something else than its graph, by "
                  "{:.2g} (squared error / power) where {:.2g} is allowed: one "
                  "of {} or the kernels",
                  name, error, bound, phases);
  }
  return {};
}

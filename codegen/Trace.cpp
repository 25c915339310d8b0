#include "codegen/Trace.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Location.h"

using namespace mlir;
using namespace lathe;
using namespace lathe::codegen;
using lathe::ir::Tensor;

std::vector<std::string> codegen::namesOf(Location loc) {
  std::vector<std::string> names;
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      for (std::string &name : namesOf(part))
        names.push_back(std::move(name));
  } else if (auto named = dyn_cast<NameLoc>(loc)) {
    names.push_back(named.getName().str());
  }
  return names;
}

const Tensor *Trace::find(Value value) const {
  if (auto found = indexOf.find(value); found != indexOf.end())
    return &entries[found->second].tensor;
  auto found = arguments.find(value);
  return found == arguments.end() ? nullptr : &found->second;
}

std::vector<ir::StepRow> codegen::rowsFrom(size_t start, size_t count) {
  std::vector<ir::StepRow> rows;
  rows.reserve(count);
  for (size_t i = 0; i < count; ++i)
    rows.push_back({0, static_cast<int32_t>(start + i)});
  return rows;
}

namespace {

FailureOr<Tensor> only(ModuleOp module, StringRef function,
                       FailureOr<std::vector<Tensor>> results) {
  if (failed(results))
    return failure();
  if (results->size() != 1)
    return module.emitError("@") << function << " must have one result";
  return std::move(results->front());
}

FailureOr<Tensor> runBody(ir::Interpreter &interpreter, ModuleOp module,
                          ArrayRef<int32_t> tokens, size_t start,
                          ir::KvStore &store) {
  std::vector<Tensor> arguments;
  arguments.push_back(
      Tensor::ints({static_cast<int64_t>(tokens.size())}, tokens.vec()));
  if (ir::isStepForm(module))
    return only(module, "body",
                interpreter.runStep("body", std::move(arguments),
                                    rowsFrom(start, tokens.size()), store));
  return only(module, "body", interpreter.run("body", std::move(arguments)));
}

void keepArgument(Trace &trace, ModuleOp module, StringRef function,
                  const Tensor &tensor) {
  if (auto found = module.lookupSymbol<func::FuncOp>(function))
    if (found.getNumArguments() > 0)
      trace.arguments[found.getArgument(0)] = tensor;
}

} // namespace

FailureOr<Trace> codegen::traceModule(ModuleOp module,
                                      ir::WeightProvider &weights,
                                      const std::vector<int32_t> &tokens,
                                      const Tensor *headInput) {
  Trace trace;
  trace.step = ir::isStepForm(module);
  ir::Interpreter interpreter(module, weights);
  interpreter.setHook([&](Operation *op, std::span<const Tensor *const> all) {
    unsigned index = 0;
    for (OpResult result : op->getResults()) {
      if (!isa<RankedTensorType>(result.getType()))
        continue;
      trace.indexOf[result] = trace.entries.size();
      trace.entries.push_back({op, result.getResultNumber(), *all[index++]});
    }
  });
  keepArgument(trace, module, "body",
               Tensor::ints({static_cast<int64_t>(tokens.size())}, tokens));
  ir::KvStore store;
  FailureOr<Tensor> hidden = runBody(interpreter, module, tokens, 0, store);
  if (failed(hidden))
    return failure();
  trace.hidden = std::move(*hidden);
  const Tensor &input = headInput ? *headInput : trace.hidden;
  keepArgument(trace, module, "head", input);
  FailureOr<Tensor> logits =
      only(module, "head", interpreter.run("head", {input}));
  if (failed(logits))
    return failure();
  trace.logits = std::move(*logits);
  return trace;
}

FailureOr<Tensor> codegen::hiddenBySteps(ModuleOp module,
                                         ir::WeightProvider &weights,
                                         const std::vector<int32_t> &tokens,
                                         const std::vector<size_t> &steps) {
  ir::Interpreter interpreter(module, weights);
  ir::KvStore store;
  std::vector<float> rows;
  int64_t width = 0;
  size_t start = 0;
  for (size_t count : steps) {
    FailureOr<Tensor> hidden =
        runBody(interpreter, module,
                ArrayRef<int32_t>(tokens).slice(start, count), start, store);
    if (failed(hidden))
      return failure();
    rows.insert(rows.end(), hidden->f32().begin(), hidden->f32().end());
    width = hidden->dim(1);
    start += count;
  }
  return Tensor::floats({static_cast<int64_t>(start), width}, std::move(rows));
}

#include "passes/ContractFormer.h"
#include "passes/ElementRegion.h"
#include "passes/FunctionFormer.h"

using namespace mlir;
using namespace lathe::ir;

namespace lathe::passes {
#define GEN_PASS_DEF_FORMKERNELS
#include "passes/Passes.h.inc"

int64_t columnsOf(Value value) {
  int64_t columns = 1;
  for (int64_t dim :
       cast<RankedTensorType>(value.getType()).getShape().drop_front())
    columns *= dim;
  return columns;
}

FunctionFormer::FunctionFormer(func::FuncOp func, ProgramEmitter &emitter,
                               const TargetInfo &target)
    : func(func), emitter(emitter), target(target),
      stepForm(isStepForm(func->getParentOfType<ModuleOp>())) {}

LogicalResult FunctionFormer::run() {
  // Neighbours that run as plain loops are told of as one.
  SmallVector<Operation *> contracted;
  for (Operation &op : func.getBody().front()) {
    if (done.contains(&op))
      continue;
    bool isPlain = isContracted(&op, stepForm, symbols);
    if (failed(isPlain ? formContract(&op, emitter) : visit(&op)))
      return failure();
    if (isPlain) {
      contracted.push_back(&op);
    } else if (!isa<ReshapeOp>(op)) {
      remarkContracted(contracted);
      contracted.clear();
    }
  }
  remarkContracted(contracted);
  return success();
}

LogicalResult FunctionFormer::visit(Operation *op) {
  // Reshapes have no storage; positions come from the step; rotary embeddings
  // and head norms are part of the attention that reads them.
  if (isa<ReshapeOp, PositionsOp, KvAppendOp, RopeOp, func::ReturnOp>(op))
    return success();
  if (auto norm = dyn_cast<RmsNormOp>(op);
      norm && cast<RankedTensorType>(norm.getType()).getRank() == 3)
    return success();
  if (auto embed = dyn_cast<EmbedOp>(op))
    return formEmbed(embed);
  if (auto linear = dyn_cast<LinearOp>(op))
    return formGemm(op, linear.getInput(), {linear.getWeightAttr()},
                    {linear.getBiasAttr()}, {linear.getResult()});
  if (auto merged = dyn_cast<MergedLinearOp>(op))
    return formMerged(merged);
  if (auto attention = dyn_cast<PagedAttentionOp>(op))
    return formAttention(attention);
  if (isa<RmsNormOp, QuantizeRowsOp>(op) || isElementwise(op))
    return formRowwise(op);
  return op->emitOpError("has no kernel on this target");
}

namespace {

struct FormKernelsPass : impl::FormKernelsBase<FormKernelsPass> {
  FormKernelsPass() = default;
  explicit FormKernelsPass(const TargetInfo &target) : target(target) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    KernelTable kernels(module);
    for (StringRef name : {"body", "head"}) {
      auto func = module.lookupSymbol<func::FuncOp>(name);
      if (!func) {
        module.emitError("form-kernels needs a function @") << name;
        return signalPassFailure();
      }
      bool head = name == "head";
      // The program takes the function's name.
      SymbolTable::setSymbolName(func, ("graph." + name).str());
      ProgramEmitter emitter(kernels, module, name,
                             head ? LaunchRows::Head : LaunchRows::Tokens,
                             func.getLoc());
      if (head)
        emitter.bind(func.getArgument(0),
                     emitter.stepBuffer(StepBuffer::HeadInput));
      if (failed(FunctionFormer(func, emitter, target).run()))
        return signalPassFailure();
      func.erase();
    }
    formPick(module, kernels);
  }

private:
  TargetInfo target;
};

} // namespace

std::unique_ptr<Pass> createFormKernels(const TargetInfo &target) {
  return std::make_unique<FormKernelsPass>(target);
}

} // namespace lathe::passes

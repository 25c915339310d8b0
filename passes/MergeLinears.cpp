#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace lathe::ir;

namespace lathe::passes {
#define GEN_PASS_DEF_MERGELINEARS
#include "passes/Passes.h.inc"

namespace {

bool isFloatWeight(WeightOp weight) {
  auto block = cast<BlockType>(weight.getTensorType().getElementType());
  return kernels::isFloatFormat(block.getFormat());
}

void merge(ArrayRef<LinearOp> linears) {
  LinearOp first = linears.front();
  OpBuilder builder(first);
  SmallVector<Attribute> weights, biases;
  SmallVector<Type> types;
  SmallVector<Location> locs;
  bool anyBias = false;
  for (LinearOp linear : linears) {
    weights.push_back(linear.getWeightAttr());
    biases.push_back(linear.getBiasAttr()
                         ? static_cast<Attribute>(linear.getBiasAttr())
                         : builder.getUnitAttr());
    anyBias |= static_cast<bool>(linear.getBiasAttr());
    types.push_back(linear.getType());
    locs.push_back(linear.getLoc());
  }
  auto merged = builder.create<MergedLinearOp>(
      builder.getFusedLoc(locs), types, first.getInput(),
      builder.getArrayAttr(weights),
      anyBias ? builder.getArrayAttr(biases) : ArrayAttr());
  for (auto [linear, result] : llvm::zip(linears, merged.getResults())) {
    LinearOp op = linear;
    op.getResult().replaceAllUsesWith(result);
    op.erase();
  }
}

struct MergeLinearsPass : impl::MergeLinearsBase<MergeLinearsPass> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      // In block order, so that segments follow the model.
      llvm::MapVector<std::pair<Value, unsigned>, SmallVector<LinearOp>> groups;
      func.walk([&](LinearOp linear) {
        WeightOp weight = lookupWeight(linear, linear.getWeightAttr(), symbols);
        if (weight)
          groups[{linear.getInput(), isFloatWeight(weight)}].push_back(linear);
      });
      for (auto &[input, linears] : groups) {
        if (input.second && groups.contains({input.first, false}))
          emitRemark(linears.front()->getLoc())
              << "float weights read the same input as quantized ones and are "
                 "not merged with them; weights of one kind would be one "
                 "kernel";
        if (linears.size() < 2)
          continue;
        merge(linears);
        ++merged;
      }
    }
  }
};

} // namespace
} // namespace lathe::passes

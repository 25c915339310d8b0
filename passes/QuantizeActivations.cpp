#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace lathe::ir;

namespace lathe::passes {
#define GEN_PASS_DEF_QUANTIZEACTIVATIONS
#include "passes/Passes.h.inc"

namespace {

struct QuantizeActivationsPass
    : impl::QuantizeActivationsBase<QuantizeActivationsPass> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    DenseMap<Value, Value> quantized;
    auto rewrite = [&](Operation *op, OpOperand &input,
                       FlatSymbolRefAttr weightSymbol) {
      auto type = cast<RankedTensorType>(input.get().getType());
      WeightOp weight = lookupWeight(op, weightSymbol, symbols);
      if (!weight || !type.getElementType().isF32())
        return;
      auto block = cast<BlockType>(weight.getTensorType().getElementType());
      if (kernels::isFloatFormat(block.getFormat()))
        return;
      Value &value = quantized[input.get()];
      if (!value) {
        // Behind the producer, so that it dominates every linear that shares
        // it.
        OpBuilder builder(op);
        builder.setInsertionPointAfterValue(input.get());
        value = builder.create<QuantizeRowsOp>(
            input.get().getLoc(),
            RankedTensorType::get(type.getShape(),
                                  Q8Type::get(builder.getContext())),
            input.get());
      }
      input.set(value);
    };
    getOperation().walk([&](Operation *op) {
      if (auto linear = dyn_cast<LinearOp>(op))
        rewrite(op, linear.getInputMutable(), linear.getWeightAttr());
      else if (auto merged = dyn_cast<MergedLinearOp>(op))
        rewrite(op, merged.getInputMutable(),
                cast<FlatSymbolRefAttr>(merged.getWeights()[0]));
    });
  }
};

} // namespace
} // namespace lathe::passes

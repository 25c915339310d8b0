#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace lathe::ir;

namespace lathe::passes {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "passes/Passes.h.inc"

namespace {

RankedTensorType packedType(RankedTensorType type, Layout layout) {
  auto block = cast<BlockType>(type.getElementType());
  return RankedTensorType::get(
      type.getShape(),
      BlockType::get(type.getContext(), block.getFormat(), layout));
}

struct PackWeightsPass : impl::PackWeightsBase<PackWeightsPass> {
  PackWeightsPass() = default;
  explicit PackWeightsPass(const TargetInfo &target) : target(target) {}

  void runOnOperation() override {
    DenseSet<StringAttr> used;
    getOperation().walk(
        [&](WeightRefOp ref) { used.insert(ref.getWeightAttr().getAttr()); });
    for (auto weight :
         llvm::make_early_inc_range(getOperation().getOps<WeightOp>())) {
      if (!used.contains(weight.getSymNameAttr()))
        weight.erase();
      else
        pack(weight);
    }
    getOperation().walk([&](Operation *op) { retype(op); });
  }

private:
  void pack(WeightOp weight) {
    RankedTensorType type = weight.getTensorType();
    auto block = dyn_cast<BlockType>(type.getElementType());
    if (!block || block.getLayout() == target.weightLayout)
      return;
    Builder builder(weight.getContext());
    weight.setTypeAttr(TypeAttr::get(packedType(type, target.weightLayout)));
    weight.setRecipeAttr(RecipeAttr::get(builder.getContext(), "pack",
                                         builder.getDictionaryAttr({}),
                                         {weight.getRecipe()}));
  }

  /// Kernels name the layout that they read.
  void retype(Operation *op) {
    auto layout = [&](BlockType block) {
      return BlockType::get(op->getContext(), block.getFormat(),
                            target.weightLayout);
    };
    if (auto embed = dyn_cast<EmbedKernelOp>(op)) {
      embed.setWeightAttr(
          TypeAttr::get(layout(cast<BlockType>(embed.getWeight()))));
    } else if (auto pick = dyn_cast<PickKernelOp>(op)) {
      pick.setWeightAttr(
          TypeAttr::get(layout(cast<BlockType>(pick.getWeight()))));
      pick.setCoarseAttr(
          TypeAttr::get(layout(cast<BlockType>(pick.getCoarse()))));
    } else if (auto contract = dyn_cast<ContractKernelOp>(op)) {
      if (contract.getWeight())
        contract.setWeightAttr(
            TypeAttr::get(layout(cast<BlockType>(*contract.getWeight()))));
    } else if (auto gemm = dyn_cast<GemmKernelOp>(op)) {
      SmallVector<Attribute> segments;
      for (Attribute attr : gemm.getSegments()) {
        auto segment = cast<SegmentAttr>(attr);
        segments.push_back(SegmentAttr::get(
            op->getContext(), segment.getN(), layout(segment.getWeight()),
            segment.getPaired(), segment.getStore(), segment.getSides()));
      }
      gemm.setSegmentsAttr(ArrayAttr::get(op->getContext(), segments));
    }
  }

  TargetInfo target;
};

} // namespace

std::unique_ptr<Pass> createPackWeights(const TargetInfo &target) {
  return std::make_unique<PackWeightsPass>(target);
}

} // namespace lathe::passes

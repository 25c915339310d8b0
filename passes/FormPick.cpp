#include "passes/KernelEmitter.h"

#include "kernels/abi/StepArgs.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace lathe::ir;
using namespace lathe;
using namespace lathe::passes;

/// True for a region that yields its argument.
static bool isIdentity(Region &region) {
  Block &block = region.front();
  auto yield = dyn_cast<YieldOp>(block.front());
  return yield && block.getNumArguments() == 1 &&
         yield.getValue() == block.getArgument(0);
}

/// The only segment of a gemm whose accumulators are stored as they are.
static SegmentAttr plainSegment(GemmKernelOp gemm) {
  if (gemm.getSegments().size() != 1 || gemm.getInput() != Store::Q8)
    return {};
  auto segment = cast<SegmentAttr>(gemm.getSegments()[0]);
  bool isPlain = !segment.getPaired() && segment.getStore() == Store::F32 &&
                 segment.getSides().empty() &&
                 isIdentity(gemm.getEpilogues()[0]);
  return isPlain ? segment : SegmentAttr();
}

namespace {

/// What a pick reads beside the head.
struct CoarseWeights {
  WeightOp values, errors;
};

} // namespace

static CoarseWeights makeCoarse(WeightOp weight) {
  RankedTensorType type = weight.getTensorType();
  OpBuilder builder(weight);
  builder.setInsertionPointAfter(weight);
  auto make = [&](StringRef suffix, RankedTensorType made, StringRef transform,
                  ArrayRef<NamedAttribute> params) {
    return builder.create<WeightOp>(
        weight.getLoc(), builder.getStringAttr(weight.getSymName() + suffix),
        TypeAttr::get(made),
        RecipeAttr::get(builder.getContext(), transform,
                        builder.getDictionaryAttr(params),
                        {weight.getRecipe()}),
        StringAttr());
  };
  auto rounded = RankedTensorType::get(
      type.getShape(), BlockType::get(builder.getContext(),
                                      kernels::Format::Q5_0, Layout::Rows));
  auto perRow =
      RankedTensorType::get({type.getDimSize(0)}, builder.getF32Type());
  auto k =
      builder.getNamedAttr("k", builder.getI64IntegerAttr(type.getDimSize(1)));
  WeightOp values = make(".coarse", rounded, "coarse", {});
  WeightOp errors = make(".coarse_errors", perRow, "coarse_errors", k);
  return {values, errors};
}

void passes::formPick(ModuleOp module, KernelTable &kernels) {
  auto head = module.lookupSymbol<ProgramOp>("head");
  LaunchOp last;
  for (auto launch : head.getOps<LaunchOp>())
    last = launch;
  auto gemm = last ? module.lookupSymbol<GemmKernelOp>(last.getKernelAttr())
                   : GemmKernelOp();
  SegmentAttr segment = gemm ? plainSegment(gemm) : SegmentAttr();
  if (!segment || segment.getWeight().getFormat() != kernels::Format::Q8_0)
    return;
  auto logits = last.getBuffers().back().getDefiningOp<StepBufferOp>();
  auto ref = last.getBuffers()[1].getDefiningOp<WeightRefOp>();
  auto weight = module.lookupSymbol<WeightOp>(ref.getWeightAttr());
  if (!logits || logits.getKind() != StepBuffer::Logits ||
      !isa<SourceAttr>(weight.getRecipe()))
    return;

  OpBuilder &builder = kernels.builder();
  Location loc = last.getLoc();
  CoarseWeights coarse = makeCoarse(weight);
  auto kernel = builder.create<PickKernelOp>(
      loc, kernels.placeholder(), gemm.getKAttr(),
      builder.getI64IntegerAttr(segment.getN()),
      TypeAttr::get(segment.getWeight()),
      TypeAttr::get(coarse.values.getTensorType().getElementType()),
      StringAttr());
  FlatSymbolRefAttr symbol = kernels.intern(kernel);

  OpBuilder inside(head);
  inside.setInsertionPointAfter(head);
  auto pick = cast<ProgramOp>(inside.clone(*head));
  SymbolTable::setSymbolName(pick, "pick");
  auto replaced = cast<LaunchOp>(pick.getBody().front().back());
  inside.setInsertionPoint(replaced);
  auto buffer = inside.getType<BufferType>();
  auto size = SizeAttr::get(inside.getContext(), 0, 0, 0, 0,
                            int64_t(maxHeadRows) * pickStateBytes);
  auto refTo = [&](WeightOp made) -> Value {
    return inside.create<WeightRefOp>(
        loc, buffer, FlatSymbolRefAttr::get(made.getSymNameAttr()));
  };
  Value values = refTo(coarse.values), errors = refTo(coarse.errors);
  Value state = inside.create<AllocOp>(loc, buffer, size, IntegerAttr());
  Value picked = inside.create<StepBufferOp>(
      loc, buffer,
      StepBufferAttr::get(inside.getContext(), StepBuffer::Picked));
  ValueRange operands = replaced.getBuffers();
  inside.create<LaunchOp>(loc, symbol,
                          ValueRange{operands[0], operands[1], values, errors,
                                     operands.back(), state, picked},
                          /*wanted=*/UnitAttr(), DenseI64ArrayAttr());
  replaced.erase();
}

#include "passes/FunctionFormer.h"

#include "passes/ElementRegion.h"

using namespace mlir;
using namespace lathe::ir;
using namespace lathe;
using namespace lathe::passes;

FailureOr<FunctionFormer::RowStage> FunctionFormer::makeStage(Operation *op,
                                                              Value input) {
  RowStage stage;
  Cluster &cluster = stage.cluster;
  cluster.biases = {FlatSymbolRefAttr()};
  cluster.roots = {input};
  cluster.tip = input;
  done.insert(op);
  if (auto quantize = dyn_cast<QuantizeRowsOp>(op)) {
    stage.quantized = {quantize.getResult()};
    return stage;
  }
  if ((stage.norm = dyn_cast<RmsNormOp>(op))) {
    cluster.roots = {stage.norm.getResult()};
    cluster.columnScale = stage.norm.getWeightAttr();
    cluster.tip = stage.norm.getResult();
  } else {
    if (!readsOnly(op, input))
      return op->emitOpError("reads a value that no kernel has stored");
    absorb(cluster, op, input);
  }
  grow(cluster);
  for (Operation *user : usersOf(cluster.tip)) {
    auto norm = dyn_cast<RmsNormOp>(user);
    if (auto quantize = dyn_cast<QuantizeRowsOp>(user)) {
      stage.quantized.push_back(quantize.getResult());
      done.insert(user);
    } else if (norm && !stage.next &&
               cast<RankedTensorType>(norm.getType()).getRank() == 2) {
      stage.next = norm;
    } else {
      stage.storesF32 = true;
    }
  }
  return stage;
}

LogicalResult FunctionFormer::formRowwise(Operation *first) {
  MLIRContext *context = func.getContext();
  OpBuilder &builder = emitter.kernels().builder();
  Value input = storageOf(first->getOperand(0));
  SmallVector<Value> operands = {emitter.lookup(input)}, sideBuffers, outs;
  if (!operands.front())
    return first->emitOpError("reads a value that no kernel has stored");
  if (!isa<RmsNormOp>(first))
    remarkOwnKernel(first);
  SmallVector<RowStage, 0> rowStages;
  for (Operation *op = first; op; op = rowStages.back().next) {
    FailureOr<RowStage> stage = makeStage(op, input);
    if (failed(stage))
      return failure();
    rowStages.push_back(std::move(*stage));
  }
  // Each thread may repeat a launch for itself unless its result leaves the
  // program: that exists once.
  bool replicated =
      target.replicateRowwise && llvm::none_of(rowStages, [](RowStage &s) {
        return s.storesF32 && isReturned(s.cluster.tip);
      });

  SmallVector<Attribute> stages;
  SmallVector<std::unique_ptr<Region>> regions;
  for (RowStage &stage : rowStages) {
    SmallVector<Side> sides;
    SmallVector<Store> stores;
    regions.push_back(std::make_unique<Region>());
    buildRegion(stage.cluster, *regions.back(), sides, sideBuffers);
    Value tip = stage.cluster.tip;
    if (stage.storesF32) {
      stores.push_back(Store::F32);
      outs.push_back(emitter.allocateFor(tip, replicated));
    }
    if (!stage.quantized.empty()) {
      stores.push_back(Store::Q8);
      outs.push_back(emitter.allocate(
          tip.getLoc(), rowStoreBytes(Store::Q8, columnsOf(tip)), replicated));
      for (Value quantized : stage.quantized)
        emitter.bind(quantized, outs.back());
    }
    stages.push_back(StageAttr::get(context, static_cast<bool>(stage.norm),
                                    stage.norm ? stage.norm.getEpsilonAttr()
                                               : builder.getF32FloatAttr(0),
                                    sides, stores));
  }
  auto kernel = builder.create<RowwiseKernelOp>(
      first->getLoc(), emitter.kernels().placeholder(),
      builder.getI64IntegerAttr(columnsOf(input)),
      LaunchRowsAttr::get(context, emitter.rows()),
      builder.getBoolAttr(replicated), builder.getArrayAttr(stages),
      StringAttr(), static_cast<unsigned>(regions.size()));
  for (auto [region, map] : llvm::zip(regions, kernel.getMaps()))
    map.takeBody(*region);
  operands.append(sideBuffers);
  operands.append(outs);
  emitter.launch(first->getLoc(), emitter.kernels().intern(kernel), operands);
  return success();
}

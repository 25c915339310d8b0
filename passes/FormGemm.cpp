#include "passes/FunctionFormer.h"

using namespace mlir;
using namespace lathe::ir;
using namespace lathe;
using namespace lathe::passes;

WeightOp FunctionFormer::weightOf(Operation *op, FlatSymbolRefAttr symbol) {
  return lookupWeight(op, symbol, symbols);
}

BlockType FunctionFormer::blockOf(Operation *op, FlatSymbolRefAttr symbol) {
  return cast<BlockType>(weightOf(op, symbol).getTensorType().getElementType());
}

LogicalResult FunctionFormer::formEmbed(EmbedOp op) {
  Cluster cluster{{op.getResult()}, {FlatSymbolRefAttr()}, {}, {}, {},
                  op.getResult()};
  grow(cluster);
  if (!cluster.elements.empty())
    return op.emitOpError("is combined with another activation elementwise, "
                          "which the embed kernel cannot do");
  WeightOp weight = weightOf(op, op.getWeightAttr());
  OpBuilder &builder = emitter.kernels().builder();
  auto kernel = builder.create<EmbedKernelOp>(
      op.getLoc(), emitter.kernels().placeholder(),
      builder.getI64IntegerAttr(weight.getTensorType().getDimSize(0)),
      builder.getI64IntegerAttr(weight.getTensorType().getDimSize(1)),
      TypeAttr::get(weight.getTensorType().getElementType()), StringAttr());
  SmallVector<Side> sides;
  SmallVector<Value> sideBuffers;
  buildRegion(cluster, kernel.getMap(), sides, sideBuffers);
  FlatSymbolRefAttr symbol = emitter.kernels().intern(kernel);
  emitter.launch(
      op.getLoc(), symbol,
      {emitter.weight(op.getWeightAttr()), emitter.allocateFor(cluster.tip)});
  return success();
}

LogicalResult FunctionFormer::formMerged(MergedLinearOp op) {
  SmallVector<FlatSymbolRefAttr> weights, biases;
  for (auto [index, weight] : llvm::enumerate(op.getWeights())) {
    weights.push_back(cast<FlatSymbolRefAttr>(weight));
    biases.push_back(op.getBiases()
                         ? dyn_cast<FlatSymbolRefAttr>((*op.getBiases())[index])
                         : FlatSymbolRefAttr());
  }
  return formGemm(op, op.getInput(), weights, biases,
                  SmallVector<Value>(op.getResults()));
}

void FunctionFormer::pairUp(Operation *op, SmallVector<Cluster, 0> &clusters,
                            SmallVectorImpl<WeightSymbols> &weights) {
  for (size_t i = 0; i + 1 < clusters.size(); ++i)
    for (size_t j = i + 1; j < clusters.size(); ++j) {
      Cluster &first = clusters[i], &second = clusters[j];
      Operation *next = nextElementwise(first);
      SmallVector<Value, 2> tips = {first.tip, second.tip};
      if (!next || next != nextElementwise(second) ||
          !canPair(op, next, weights[i][0], weights[j][0], tips))
        continue;
      first.roots.append(second.roots);
      first.biases.append(second.biases);
      first.ops.append(second.ops);
      first.elements.insert(second.elements.begin(), second.elements.end());
      absorb(first, next, tips);
      weights[i].append(weights[j]);
      clusters.erase(clusters.begin() + static_cast<ptrdiff_t>(j));
      weights.erase(weights.begin() + static_cast<ptrdiff_t>(j));
      grow(clusters[i]);
      break;
    }
}

FlatSymbolRefAttr
FunctionFormer::interleave(Operation *op, ArrayRef<FlatSymbolRefAttr> sources) {
  WeightOp first = weightOf(op, sources[0]), second = weightOf(op, sources[1]);
  std::string name =
      (sources[0].getValue() + "+" + sources[1].getValue()).str();
  auto module = op->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol(name)) {
    OpBuilder builder(second);
    builder.setInsertionPointAfter(second);
    RankedTensorType type = first.getTensorType();
    auto rows = builder.getNamedAttr(
        "rows", builder.getI64IntegerAttr(target.pairRows));
    builder.create<WeightOp>(
        builder.getFusedLoc({first.getLoc(), second.getLoc()}),
        builder.getStringAttr(name),
        TypeAttr::get(
            RankedTensorType::get({2 * type.getDimSize(0), type.getDimSize(1)},
                                  type.getElementType())),
        RecipeAttr::get(builder.getContext(), "interleave",
                        builder.getDictionaryAttr(rows),
                        {first.getRecipe(), second.getRecipe()}),
        StringAttr());
  }
  return FlatSymbolRefAttr::get(op->getContext(), name);
}

LogicalResult FunctionFormer::formGemm(
    Operation *op, Value input, ArrayRef<FlatSymbolRefAttr> weightSymbols,
    ArrayRef<FlatSymbolRefAttr> biases, ArrayRef<Value> results) {
  MLIRContext *context = op->getContext();
  SmallVector<Cluster, 0> clusters;
  SmallVector<WeightSymbols> weights;
  for (auto [weight, bias, result] :
       llvm::zip(weightSymbols, biases, results)) {
    clusters.push_back({{result}, {bias}, {}, {}, {}, result});
    weights.push_back({weight});
  }
  for (Cluster &cluster : clusters)
    grow(cluster);
  pairUp(op, clusters, weights);
  remarkUnmerged(op, input);

  bool q8 =
      isa<Q8Type>(cast<RankedTensorType>(input.getType()).getElementType());
  OpBuilder &builder = emitter.kernels().builder();
  SmallVector<Attribute> segments;
  SmallVector<Value> operands = {emitter.lookup(input)}, sideBuffers, outs;
  SmallVector<std::unique_ptr<Region>> regions;
  for (auto [cluster, symbols] : llvm::zip(clusters, weights)) {
    bool paired = symbols.size() == 2;
    FlatSymbolRefAttr weight = paired ? interleave(op, symbols) : symbols[0];
    operands.push_back(emitter.weight(weight));
    regions.push_back(std::make_unique<Region>());
    SmallVector<Side> sides;
    buildRegion(cluster, *regions.back(), sides, sideBuffers);
    int64_t n = columnsOf(cluster.tip);
    QuantizeRowsOp quantize = onlyQuantized(cluster.tip);
    Store store =
        quantize && n % target.columnUnit == 0 ? Store::Q8 : Store::F32;
    segments.push_back(SegmentAttr::get(context, n, blockOf(op, symbols[0]),
                                        paired, store, sides));
    if (store == Store::Q8) {
      outs.push_back(
          emitter.allocate(cluster.tip.getLoc(), rowStoreBytes(Store::Q8, n)));
      emitter.bind(quantize.getResult(), outs.back());
      done.insert(quantize);
    } else {
      outs.push_back(emitter.allocateFor(cluster.tip));
    }
  }
  auto kernel = builder.create<GemmKernelOp>(
      op->getLoc(), emitter.kernels().placeholder(),
      builder.getI64IntegerAttr(columnsOf(input)),
      LaunchRowsAttr::get(context, emitter.rows()),
      StoreAttr::get(context, q8 ? Store::Q8 : Store::F32),
      builder.getArrayAttr(segments), StringAttr(),
      static_cast<unsigned>(regions.size()));
  for (auto [region, map] : llvm::zip(regions, kernel.getEpilogues()))
    map.takeBody(*region);
  operands.append(sideBuffers);
  operands.append(outs);
  emitter.launch(op->getLoc(), emitter.kernels().intern(kernel), operands);
  return success();
}

#include "ir/lathe/Verify.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace lathe;
using namespace lathe::ir;

namespace {

/// Sizes of a static tensor of elements that are not blocks.
bool isVectorOf(RankedTensorType type, int64_t n) {
  return type.getElementType().isF32() && type.getRank() == 1 &&
         type.getDimSize(0) == n;
}

/// Checks input [T, K] and result [T, N] of a linear against its weight.
LogicalResult verifyLinear(Operation *op, Value input, FlatSymbolRefAttr weight,
                           FlatSymbolRefAttr bias, Value result,
                           SymbolTableCollection &symbols) {
  WeightOp decl = lookupWeight(op, weight, symbols);
  if (!decl || failed(verifyRows(op, input, result)))
    return failure();
  RankedTensorType type = decl.getTensorType();
  if (type.getRank() != 2 || !isa<BlockType>(type.getElementType()))
    return op->emitOpError("needs ")
           << weight << " to be a matrix of !lathe.block, not " << type;
  if (type.getDimSize(1) != lastDim(input))
    return op->emitOpError("has an input of ")
           << lastDim(input) << " columns, but " << weight << " has "
           << type.getDimSize(1);
  if (type.getDimSize(0) != lastDim(result))
    return op->emitOpError("has a result of ")
           << lastDim(result) << " columns, but " << weight << " has "
           << type.getDimSize(0) << " rows";
  if (!bias)
    return success();
  WeightOp biasDecl = lookupWeight(op, bias, symbols);
  if (!biasDecl)
    return failure();
  if (!isVectorOf(biasDecl.getTensorType(), lastDim(result)))
    return op->emitOpError("needs bias ")
           << bias << " to be f32 of " << lastDim(result) << ", not "
           << biasDecl.getTensorType();
  return success();
}

KvGroupOp lookupGroup(Operation *op, FlatSymbolRefAttr symbol,
                      SymbolTableCollection &symbols) {
  auto group = symbols.lookupNearestSymbolFrom<KvGroupOp>(op, symbol);
  if (!group)
    op->emitOpError("names ") << symbol << ", which is not a lathe.kv_group";
  return group;
}

} // namespace

WeightOp lathe::ir::lookupWeight(Operation *from, FlatSymbolRefAttr symbol,
                                 SymbolTableCollection &symbols) {
  auto weight = symbols.lookupNearestSymbolFrom<WeightOp>(from, symbol);
  if (!weight)
    from->emitOpError("names ") << symbol << ", which is not a lathe.weight";
  return weight;
}

//===----------------------------------------------------------------------===//

LogicalResult EmbedOp::verifySymbolUses(SymbolTableCollection &symbols) {
  WeightOp weight = lookupWeight(*this, getWeightAttr(), symbols);
  if (!weight || failed(verifyRows(*this, getTokens(), getResult())))
    return failure();
  RankedTensorType type = weight.getTensorType();
  if (type.getRank() != 2 || !isa<BlockType>(type.getElementType()) ||
      type.getDimSize(1) != lastDim(getResult()))
    return emitOpError("needs ")
           << getWeightAttr() << " to be a matrix of !lathe.block with "
           << lastDim(getResult()) << " columns, not " << type;
  return success();
}

LogicalResult LinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyLinear(*this, getInput(), getWeightAttr(), getBiasAttr(),
                      getResult(), symbols);
}

LogicalResult MergedLinearOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getWeights().size() != getResults().size() || getWeights().empty())
    return emitOpError("has ") << getWeights().size() << " weights and "
                               << getResults().size() << " results";
  if (getBiases() && getBiases()->size() != getWeights().size())
    return emitOpError("needs one entry in 'biases' per weight");
  for (auto [index, weight] : llvm::enumerate(getWeights())) {
    FlatSymbolRefAttr bias;
    if (getBiases() && !isa<UnitAttr>((*getBiases())[index])) {
      bias = dyn_cast<FlatSymbolRefAttr>((*getBiases())[index]);
      if (!bias)
        return emitOpError("has an entry in 'biases' that is neither a symbol "
                           "nor unit");
    }
    if (failed(verifyLinear(*this, getInput(), cast<FlatSymbolRefAttr>(weight),
                            bias, getResults()[index], symbols)))
      return failure();
  }
  return success();
}

LogicalResult RmsNormOp::verifySymbolUses(SymbolTableCollection &symbols) {
  WeightOp weight = lookupWeight(*this, getWeightAttr(), symbols);
  if (!weight)
    return failure();
  if (!isVectorOf(weight.getTensorType(), lastDim(getInput())))
    return emitOpError("needs ")
           << getWeightAttr() << " to be f32 of " << lastDim(getInput())
           << ", not " << weight.getTensorType();
  if (!isFiniteFrom(getEpsilon(), 0))
    return emitOpError("needs a finite epsilon of 0 or more");
  return success();
}

LogicalResult RopeOp::verifySymbolUses(SymbolTableCollection &symbols) {
  WeightOp table = lookupWeight(*this, getTableAttr(), symbols);
  if (!table || failed(verifyHeads(*this, getInput())) ||
      failed(verifyRows(*this, getInput(), getPositions())))
    return failure();
  RankedTensorType type = table.getTensorType();
  if (type.getRank() != 3 || !type.getElementType().isF32() ||
      type.getDimSize(2) != 2 || type.getDimSize(1) > lastDim(getInput()) / 2)
    return emitOpError("needs ")
           << getTableAttr() << " to be f32 [context, pairs, 2] with at most "
           << lastDim(getInput()) / 2 << " pairs, not " << type;
  return success();
}

LogicalResult KvAppendOp::verifySymbolUses(SymbolTableCollection &symbols) {
  KvGroupOp group = lookupGroup(*this, getGroupAttr(), symbols);
  if (!group)
    return failure();
  if (group.indexOfLayer(getLayer()) < 0)
    return emitOpError("appends to layer ")
           << getLayer() << ", which " << getGroupAttr() << " does not hold";
  if (failed(verifyRows(*this, getKey(), getValue())))
    return failure();
  for (Value value : {getKey(), getValue()})
    if (dimOf(value, 1) != group.getKvHeads() ||
        dimOf(value, 2) != group.getHeadDim())
      return emitOpError("appends ")
             << value.getType() << " to a group of " << group.getKvHeads()
             << " heads of " << group.getHeadDim();
  return success();
}

LogicalResult
PagedAttentionOp::verifySymbolUses(SymbolTableCollection &symbols) {
  KvGroupOp group = lookupGroup(*this, getGroupAttr(), symbols);
  if (!group)
    return failure();
  if (group.indexOfLayer(getLayer()) < 0)
    return emitOpError("reads layer ")
           << getLayer() << ", which " << getGroupAttr() << " does not hold";
  if (failed(verifyHeads(*this, getQuery())))
    return failure();
  if (dimOf(getQuery(), 1) % group.getKvHeads() != 0 ||
      dimOf(getQuery(), 2) != group.getHeadDim())
    return emitOpError("has queries ")
           << getQuery().getType() << " for a group of " << group.getKvHeads()
           << " KV heads of " << group.getHeadDim();
  if (getWindow() != group.getWindow())
    return emitOpError("has window ")
           << getWindow() << ", but its group keeps " << group.getWindow();
  if (!getScale().isFinite() || !isFiniteFrom(getSoftcap(), 0))
    return emitOpError(
        "needs a finite scale, and a softcap of 0 (none) or more");
  return success();
}

//===----------------------------------------------------------------------===//

#include "ir/lathe/Lathe.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OpImplementation.h"

#include <cmath>

using namespace mlir;
using namespace lathe;
using namespace lathe::ir;

#define GET_OP_CLASSES
#include "ir/lathe/LatheOps.cpp.inc"

namespace {

int64_t lastDim(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

int64_t dimOf(Value value, unsigned index) {
  return cast<RankedTensorType>(value.getType()).getDimSize(index);
}

/// Heads and their size are part of a model, so they are static and positive;
/// only rows are not known before a step.
LogicalResult verifyHeads(Operation *op, Value heads) {
  for (unsigned index : {1u, 2u})
    if (dimOf(heads, index) <= 0)
      return op->emitOpError("needs static heads that are not empty, not ")
             << heads.getType();
  return success();
}

/// What is given per row of `value`.
LogicalResult verifyRows(Operation *op, Value value, Value perRow) {
  if (dimOf(value, 0) != dimOf(perRow, 0))
    return op->emitOpError("has ")
           << value.getType() << " and " << perRow.getType()
           << ", which differ in their rows";
  return success();
}

bool isFiniteFrom(const APFloat &value, double least) {
  return value.isFinite() && value.convertToDouble() >= least;
}

/// Sizes of a static tensor of elements that are not blocks.
bool isVectorOf(RankedTensorType type, int64_t n) {
  return type.getElementType().isF32() && type.getRank() == 1 &&
         type.getDimSize(0) == n;
}

LogicalResult verifyRecipe(WeightOp op, Attribute recipe, unsigned depth) {
  if (depth > 16)
    return op.emitOpError("has a recipe nested deeper than 16");
  if (auto source = dyn_cast<SourceAttr>(recipe)) {
    auto module = op->getParentOfType<ModuleOp>();
    auto files =
        module ? module->getAttrOfType<ArrayAttr>(LatheDialect::filesAttrName)
               : ArrayAttr();
    if (files && source.getFile() >= files.size())
      return op.emitOpError("names source file ")
             << source.getFile() << ", but 'lathe.files' has " << files.size();
    if (files) {
      auto file = cast<FileAttr>(files[source.getFile()]);
      if (source.getOffset() > file.getBytes() ||
          source.getBytes() > file.getBytes() - source.getOffset())
        return op.emitOpError("reads bytes ")
               << source.getOffset() << " + " << source.getBytes()
               << ", outside of '" << file.getName() << "' (" << file.getBytes()
               << " bytes)";
    }
    return success();
  }
  auto transform = dyn_cast<RecipeAttr>(recipe);
  if (!transform)
    return op.emitOpError("needs a #lathe.source or #lathe.recipe, not ")
           << recipe;
  struct Known {
    StringRef name;
    size_t inputsMin, inputsMax;
  };
  static constexpr Known known[] = {{"pack", 1, 1},
                                    {"interleave", 2, 2},
                                    {"rope_table", 0, 1},
                                    {"convert", 1, 1}};
  const Known *found = llvm::find_if(known, [&](const Known &k) {
    return k.name == transform.getTransform();
  });
  if (found == std::end(known))
    return op.emitOpError("has an unknown transform '")
           << transform.getTransform() << "'";
  size_t inputs = transform.getInputs().size();
  if (inputs < found->inputsMin || inputs > found->inputsMax)
    return op.emitOpError("gives transform '")
           << found->name << "' " << inputs << " inputs; it takes "
           << found->inputsMin << " to " << found->inputsMax;
  for (Attribute input : transform.getInputs())
    if (failed(verifyRecipe(op, input, depth + 1)))
      return failure();
  return success();
}

/// Whether a recipe, known to be well formed, can make the weight's type. What
/// this bounds by source bytes needs no other limit.
LogicalResult verifyRecipeGives(WeightOp op, RankedTensorType type) {
  auto recipe = dyn_cast<RecipeAttr>(op.getRecipe());
  if (!recipe)
    return success();
  StringRef transform = recipe.getTransform();
  bool isMatrix = isa<BlockType>(type.getElementType());
  if (isMatrix != (transform == "pack" || transform == "interleave"))
    return op.emitOpError("cannot have transform '")
           << transform << "' make " << type;
  if (transform == "interleave") {
    auto rows = recipe.getParams().getAs<IntegerAttr>("rows");
    if (!rows || rows.getValue().getSignificantBits() > 32 ||
        rows.getInt() <= 0 || type.getDimSize(0) % (2 * rows.getInt()) != 0)
      return op.emitOpError(
                 "needs 'rows' for 'interleave', of which two groups "
                 "divide its ")
             << type.getDimSize(0) << " rows";
  } else if (transform == "convert") {
    auto name = recipe.getParams().getAs<StringAttr>("format");
    auto format = name ? kernels::formatFromName(name.getValue())
                       : std::optional<kernels::Format>();
    auto source = dyn_cast<SourceAttr>(recipe.getInputs()[0]);
    if (!format || !kernels::isFloatFormat(*format) || !source)
      return op.emitOpError("needs 'format', a float format, and a source for "
                            "'convert'");
    uint64_t bytes =
        uint64_t(type.getNumElements()) * kernels::traitsOf(*format).blockBytes;
    if (source.getBytes() != bytes)
      return op.emitOpError("needs ")
             << bytes << " bytes for " << type << " from " << name.getValue()
             << ", but its source has " << source.getBytes();
  } else if (transform == "rope_table") {
    // 2^28 values are 1 GiB: a million positions of 128 pairs.
    if (type.getRank() != 3 || type.getDimSize(2) != 2 ||
        type.getNumElements() > (int64_t(1) << 28))
      return op.emitOpError("needs a rope_table to be [positions, pairs, 2] of "
                            "at most 2^28 values, not ")
             << type;
  }
  return success();
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
// Weights and groups
//===----------------------------------------------------------------------===//

LogicalResult WeightOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape() || type.getRank() == 0)
    return emitOpError("needs a static ranked tensor type, not ") << getType();
  for (int64_t dim : type.getShape())
    if (dim <= 0)
      return emitOpError("has an empty dimension in ") << type;
  if (auto block = dyn_cast<BlockType>(type.getElementType())) {
    const kernels::FormatTraits &traits = kernels::traitsOf(block.getFormat());
    if (type.getRank() != 2)
      return emitOpError("of !lathe.block must be a matrix, not ") << type;
    if (type.getDimSize(1) % traits.blockElems != 0)
      return emitOpError("has rows of ")
             << type.getDimSize(1) << ", not a multiple of "
             << StringRef(traits.mnemonic) << "'s block of "
             << traits.blockElems;
    auto source = dyn_cast<SourceAttr>(getRecipe());
    auto rowBytes = kernels::rowBytes(block.getFormat(), type.getDimSize(1));
    uint64_t bytes = 0;
    if (!rowBytes ||
        __builtin_mul_overflow(*rowBytes, uint64_t(type.getDimSize(0)), &bytes))
      return emitOpError("is larger than 2^64 bytes");
    if (source && source.getBytes() != bytes)
      return emitOpError("needs ")
             << bytes << " bytes for " << type << ", but its source has "
             << source.getBytes();
  } else if (!type.getElementType().isF32()) {
    return emitOpError("needs elements of f32 or !lathe.block, not ")
           << type.getElementType();
  } else {
    uint64_t bytes = sizeof(float);
    for (int64_t dim : type.getShape())
      if (__builtin_mul_overflow(bytes, uint64_t(dim), &bytes))
        return emitOpError("is larger than 2^64 bytes");
    auto source = dyn_cast<SourceAttr>(getRecipe());
    if (source && source.getBytes() != bytes)
      return emitOpError("needs ")
             << bytes << " bytes for " << type << ", but its source has "
             << source.getBytes();
  }
  if (failed(verifyRecipe(*this, getRecipe(), 0)))
    return failure();
  return verifyRecipeGives(*this, type);
}

LogicalResult KvGroupOp::verify() {
  size_t layers = getLayers().size();
  if (layers == 0 || getKOffsets().size() != layers ||
      getVOffsets().size() != layers)
    return emitOpError("needs one K and one V offset for each of its layers");
  if (getKvHeads() <= 0 || getHeadDim() <= 0)
    return emitOpError("needs positive kv_heads and head_dim");
  if (!getElement().isF16() && !getElement().isF32())
    return emitOpError("stores f16 or f32, not ") << getElement();
  if ((getKind() == KvKind::Window) != (getWindow() > 0))
    return emitOpError("needs a positive window if and only if its kind is "
                       "window");
  int64_t bytes = 16 * (getElement().getIntOrFloatBitWidth() / 8);
  if (__builtin_mul_overflow(bytes, getKvHeads(), &bytes) ||
      __builtin_mul_overflow(bytes, getHeadDim(), &bytes))
    return emitOpError("has tokens larger than 2^63 bytes");
  for (int64_t offset :
       llvm::concat<const int64_t>(getKOffsets(), getVOffsets()))
    if (offset < 0 || offset % 64 != 0 || offset > getPageBytes() - bytes)
      return emitOpError("has an offset of ")
             << offset << " that is not a multiple of 64 inside a page of "
             << getPageBytes() << " bytes";
  return success();
}

int64_t KvGroupOp::indexOfLayer(int64_t layer) {
  for (auto [index, candidate] : llvm::enumerate(getLayers()))
    if (candidate == layer)
      return static_cast<int64_t>(index);
  return -1;
}

//===----------------------------------------------------------------------===//
// Users of weights
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
// Shapes
//===----------------------------------------------------------------------===//

LogicalResult MatmulOp::verify() {
  unsigned inner = getTransposeB() ? 2 : 1, outer = getTransposeB() ? 1 : 2;
  if (dimOf(getLhs(), 0) != dimOf(getRhs(), 0) ||
      dimOf(getLhs(), 2) != dimOf(getRhs(), inner) ||
      dimOf(getResult(), 0) != dimOf(getLhs(), 0) ||
      dimOf(getResult(), 1) != dimOf(getLhs(), 1) ||
      dimOf(getResult(), 2) != dimOf(getRhs(), outer))
    return emitOpError("cannot multiply ")
           << getLhs().getType() << " and " << getRhs().getType() << " to "
           << getResult().getType();
  return success();
}

LogicalResult ReshapeOp::verify() {
  SmallVector<int64_t> counts;
  for (Value value : {getInput(), getResult()}) {
    int64_t count = 1;
    for (int64_t dim :
         cast<RankedTensorType>(value.getType()).getShape().drop_front()) {
      if (ShapedType::isDynamic(dim))
        return emitOpError("splits and joins static dimensions only");
      if (__builtin_mul_overflow(count, dim, &count))
        return emitOpError("has rows of more than 2^63 values");
    }
    counts.push_back(count);
  }
  if (dimOf(getInput(), 0) != dimOf(getResult(), 0) || counts[0] != counts[1])
    return emitOpError("changes the number of values: ")
           << getInput().getType() << " to " << getResult().getType();
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getInput().getType() == getResult().getType())
    return getInput();
  auto before = getInput().getDefiningOp<ReshapeOp>();
  if (before && before.getInput().getType() == getResult().getType())
    return before.getInput();
  return {};
}

LogicalResult TransposeOp::verify() {
  if (dimOf(getInput(), 0) != dimOf(getResult(), 1) ||
      dimOf(getInput(), 1) != dimOf(getResult(), 0) ||
      dimOf(getInput(), 2) != dimOf(getResult(), 2))
    return emitOpError("cannot turn ")
           << getInput().getType() << " into " << getResult().getType();
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (auto before = getInput().getDefiningOp<TransposeOp>())
    return before.getInput();
  return {};
}

LogicalResult RepeatHeadsOp::verify() {
  if (failed(verifyHeads(*this, getInput())) ||
      failed(verifyHeads(*this, getResult())))
    return failure();
  if (getTimes() <= 0 || dimOf(getResult(), 1) % getTimes() != 0 ||
      dimOf(getResult(), 1) / getTimes() != dimOf(getInput(), 1) ||
      dimOf(getInput(), 0) != dimOf(getResult(), 0) ||
      dimOf(getInput(), 2) != dimOf(getResult(), 2))
    return emitOpError("cannot repeat ")
           << getInput().getType() << " " << getTimes() << " times to "
           << getResult().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// The rest
//===----------------------------------------------------------------------===//

OpFoldResult ScaleOp::fold(FoldAdaptor) {
  if (getFactor().convertToFloat() == 1.0f)
    return getInput();
  return {};
}

LogicalResult SoftcapOp::verify() {
  float cap = getCap().convertToFloat();
  if (!(cap > 0) || !std::isfinite(cap))
    return emitOpError("needs a finite positive cap, not ") << cap;
  return success();
}

LogicalResult MaskOp::verify() {
  if (getWindow() < 0)
    return emitOpError("needs a window of 0 (none) or more, not ")
           << getWindow();
  int64_t rows = dimOf(getPositions(), 0);
  if (dimOf(getInput(), 1) != rows || dimOf(getInput(), 2) != rows)
    return emitOpError("needs one position per row and key, not ")
           << getPositions().getType() << " for " << getInput().getType();
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyHeads(*this, getQuery())) ||
      failed(verifyHeads(*this, getKey())) ||
      failed(verifyRows(*this, getQuery(), getPositions())) ||
      failed(verifyRows(*this, getQuery(), getKey())))
    return failure();
  if (getKey().getType() != getValue().getType() ||
      dimOf(getQuery(), 2) != dimOf(getKey(), 2) ||
      dimOf(getQuery(), 1) % dimOf(getKey(), 1) != 0 ||
      getQuery().getType() != getResult().getType())
    return emitOpError("cannot attend with queries ")
           << getQuery().getType() << " to keys " << getKey().getType()
           << " and values " << getValue().getType();
  if (getWindow() < 0 || !getScale().isFinite() ||
      !isFiniteFrom(getSoftcap(), 0))
    return emitOpError("needs a finite scale, and a window and a softcap of 0 "
                       "(none) or more");
  return success();
}

LogicalResult QuantizeRowsOp::verify() {
  if (getInput().getType().getShape() != getResult().getType().getShape())
    return emitOpError("keeps the shape, but turns ")
           << getInput().getType() << " into " << getResult().getType();
  return success();
}

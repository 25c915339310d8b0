#include "ir/lathe/Verify.h"

#include "ir/lathe/CacheElement.h"

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

int64_t lathe::ir::lastDim(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

int64_t lathe::ir::dimOf(Value value, unsigned index) {
  return cast<RankedTensorType>(value.getType()).getDimSize(index);
}

LogicalResult lathe::ir::verifyHeads(Operation *op, Value heads) {
  for (unsigned index : {1u, 2u})
    if (dimOf(heads, index) <= 0)
      return op->emitOpError("needs static heads that are not empty, not ")
             << heads.getType();
  return success();
}

LogicalResult lathe::ir::verifyRows(Operation *op, Value value, Value perRow) {
  if (dimOf(value, 0) != dimOf(perRow, 0))
    return op->emitOpError("has ")
           << value.getType() << " and " << perRow.getType()
           << ", which differ in their rows";
  return success();
}

bool lathe::ir::isFiniteFrom(const APFloat &value, double least) {
  return value.isFinite() && value.convertToDouble() >= least;
}

std::optional<KvType> lathe::ir::cacheType(Type element) {
  for (KvType type : {KvType::F16, KvType::BF16, KvType::F32, KvType::Int8})
    if (element == cacheElement(element.getContext(), type))
      return type;
  return std::nullopt;
}

Type lathe::ir::cacheElement(MLIRContext *context, KvType type) {
  Builder builder(context);
  switch (type) {
  case KvType::F16:
    return builder.getF16Type();
  case KvType::BF16:
    return builder.getBF16Type();
  case KvType::F32:
    return builder.getF32Type();
  case KvType::Int8:
    return builder.getIntegerType(8);
  }
  return {};
}

LogicalResult KvGroupOp::verify() {
  size_t layers = getLayers().size();
  if (layers == 0 || getKOffsets().size() != layers ||
      getVOffsets().size() != layers)
    return emitOpError("needs one K and one V offset for each of its layers");
  if (getKvHeads() <= 0 || getHeadDim() <= 0)
    return emitOpError("needs positive kv_heads and head_dim");
  std::optional<KvType> type = cacheType(getElement());
  if (!type)
    return emitOpError("stores f16, bf16, f32 or i8, not ") << getElement();
  if ((getKind() == KvKind::Window) != (getWindow() > 0))
    return emitOpError("needs a positive window if and only if its kind is "
                       "window");
  int64_t bytes = 0;
  if (getHeadDim() > int64_t(1) << 32 ||
      __builtin_mul_overflow(
          getKvHeads(), kvTileBytes(*type, static_cast<uint64_t>(getHeadDim())),
          &bytes))
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

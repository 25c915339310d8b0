#include "passes/FunctionFormer.h"

#include "kernels/abi/StepArgs.h"

using namespace mlir;
using namespace lathe::ir;
using namespace lathe;
using namespace lathe::passes;

FunctionFormer::HeadSource FunctionFormer::traceHeads(Value heads) {
  HeadSource source;
  if ((source.rope = heads.getDefiningOp<RopeOp>()))
    heads = source.rope.getInput();
  if ((source.norm = heads.getDefiningOp<RmsNormOp>()))
    heads = source.norm.getInput();
  source.flat = emitter.lookup(heads);
  return source;
}

LogicalResult FunctionFormer::formAttention(PagedAttentionOp op) {
  MLIRContext *context = op.getContext();
  auto append = op.getBatch().getDefiningOp<KvAppendOp>();
  if (!append || append.getGroup() != op.getGroup() ||
      append.getLayer() != op.getLayer())
    return op.emitOpError("does not read the batch that its own layer's "
                          "lathe.kv_append made");
  auto group =
      symbols.lookupNearestSymbolFrom<KvGroupOp>(op, op.getGroupAttr());
  HeadSource q = traceHeads(op.getQuery()), k = traceHeads(append.getKey()),
             v = traceHeads(append.getValue());
  if (!q.flat || !k.flat || !v.flat || v.rope || v.norm ||
      static_cast<bool>(q.rope) != static_cast<bool>(k.rope) ||
      static_cast<bool>(q.norm) != static_cast<bool>(k.norm) ||
      (q.rope && (q.rope.getTable() != k.rope.getTable() ||
                  q.rope.getStyle() != k.rope.getStyle())) ||
      (q.norm && q.norm.getEpsilon() != k.norm.getEpsilon()))
    return op.emitOpError(
        "needs queries and keys that are linear results, normed alike and "
        "rotated by the same table, and plain values");
  int64_t index = group.indexOfLayer(append.getLayer());
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  int64_t heads = query.getDimSize(1), headDim = query.getDimSize(2);
  OpBuilder &builder = emitter.kernels().builder();
  auto integer = [&](int64_t value) {
    return builder.getI64IntegerAttr(value);
  };
  int64_t pairs = 0;
  if (q.rope)
    pairs = weightOf(op, q.rope.getTableAttr()).getTensorType().getDimSize(1);
  auto rope = builder.create<RopeAppendKernelOp>(
      append.getLoc(), emitter.kernels().placeholder(), integer(group.getId()),
      integer(heads), integer(group.getKvHeads()), integer(headDim),
      integer(pairs),
      RopeStyleAttr::get(context,
                         q.rope ? q.rope.getStyle() : RopeStyle::Adjacent),
      builder.getBoolAttr(static_cast<bool>(q.norm)),
      q.norm ? q.norm.getEpsilonAttr() : builder.getF32FloatAttr(0),
      op.getScaleAttr(), group.getElementAttr(),
      integer(target.replicateRowwise ? target.attentionChunk : 0),
      StringAttr());
  SmallVector<Value> operands = {q.flat, k.flat, v.flat};
  if (q.rope)
    operands.push_back(emitter.weight(q.rope.getTableAttr()));
  if (q.norm) {
    operands.push_back(emitter.weight(q.norm.getWeightAttr()));
    operands.push_back(emitter.weight(k.norm.getWeightAttr()));
  }
  Value kPool =
      emitter.kvPool(op.getLoc(), group.getId(), group.getKOffsets()[index]);
  Value vPool =
      emitter.kvPool(op.getLoc(), group.getId(), group.getVOffsets()[index]);
  Value rotated = emitter.allocate(op.getLoc(), heads * headDim * 4,
                                   target.replicateRowwise);
  operands.append({kPool, vPool, rotated});
  emitter.launch(append.getLoc(), emitter.kernels().intern(rope), operands);

  QuantizeRowsOp quantize = onlyQuantized(op.getResult());
  bool wholeBlocks = headDim % activationBlockElems == 0;
  Store store = quantize && wholeBlocks ? Store::Q8 : Store::F32;
  auto attention = builder.create<AttentionKernelOp>(
      op.getLoc(), emitter.kernels().placeholder(), integer(group.getId()),
      integer(heads), integer(group.getKvHeads()), integer(headDim),
      integer(target.attentionChunk), op.getWindowAttr(), op.getSoftcapAttr(),
      group.getElementAttr(), StoreAttr::get(context, store), StringAttr());
  Value partials =
      emitter.allocatePartials(op.getLoc(), heads * (headDim + 2) * 4);
  Value out;
  if (store == Store::Q8) {
    out = emitter.allocate(op.getLoc(),
                           rowStoreBytes(Store::Q8, heads * headDim));
    emitter.bind(quantize.getResult(), out);
    done.insert(quantize);
  } else {
    out = emitter.allocateFor(op.getResult());
  }
  emitter.launch(op.getLoc(), emitter.kernels().intern(attention),
                 {rotated, kPool, vPool, partials, out});
  return success();
}

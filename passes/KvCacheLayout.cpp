#include "passes/Passes.h"

#include "ir/lathe/CacheElement.h"
#include "runtime/support/KvTypeNames.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

#include <tuple>

using namespace mlir;
using namespace lathe::ir;

namespace lathe::passes {
#define GEN_PASS_DEF_KVCACHELAYOUT
#include "passes/Passes.h.inc"

namespace {

/// Window, KV heads, head size: layers that agree share a group.
using GroupKey = std::tuple<int64_t, int64_t, int64_t>;

struct KvCacheLayoutPass : impl::KvCacheLayoutBase<KvCacheLayoutPass> {
  using KvCacheLayoutBase::KvCacheLayoutBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!kvTypeFromName(dtype)) {
      module.emitError("kv-cache-layout knows no dtype '") << dtype << "'";
      return signalPassFailure();
    }
    auto body = module.lookupSymbol<func::FuncOp>("body");
    if (!body || isStepForm(module)) {
      module.emitError("kv-cache-layout needs a sequence-form @body");
      return signalPassFailure();
    }
    WalkResult fused = body.walk([](SoftmaxOp softmax) {
      softmax.emitOpError(
          "belongs to an attention that is not fused; kv-cache-layout needs "
          "fuse-attention first");
      return WalkResult::interrupt();
    });
    if (fused.wasInterrupted())
      return signalPassFailure();

    llvm::MapVector<GroupKey, SmallVector<int64_t>> layersOf;
    SmallVector<AttentionOp> attentions;
    body.walk([&](AttentionOp op) {
      auto key = cast<RankedTensorType>(op.getKey().getType());
      layersOf[{op.getWindow(), key.getDimSize(1), key.getDimSize(2)}]
          .push_back(static_cast<int64_t>(attentions.size()));
      attentions.push_back(op);
    });

    OpBuilder builder(body);
    llvm::MapVector<GroupKey, KvGroupOp> groups;
    for (auto &[key, layers] : layersOf)
      groups[key] = makeGroup(builder, module.getLoc(), key, layers,
                              static_cast<int64_t>(groups.size()));

    Type batchType = BatchType::get(&getContext());
    unsigned index = body.getNumArguments();
    body.insertArgument(index, batchType, {}, body.getLoc());
    Value batch = body.getArgument(index);
    for (auto [layer, op] : llvm::enumerate(attentions)) {
      auto key = cast<RankedTensorType>(op.getKey().getType());
      KvGroupOp group =
          groups[{op.getWindow(), key.getDimSize(1), key.getDimSize(2)}];
      builder.setInsertionPoint(op);
      auto symbol = FlatSymbolRefAttr::get(group.getSymNameAttr());
      auto layerAttr = builder.getI64IntegerAttr(static_cast<int64_t>(layer));
      batch =
          builder.create<KvAppendOp>(op.getLoc(), batchType, batch, op.getKey(),
                                     op.getValue(), symbol, layerAttr);
      auto paged = builder.create<PagedAttentionOp>(
          op.getLoc(), op.getType(), batch, op.getQuery(), symbol, layerAttr,
          op.getScaleAttr(), op.getWindowAttr(), op.getSoftcapAttr());
      op.getResult().replaceAllUsesWith(paged.getResult());
      op.erase();
    }
    module->setAttr(LatheDialect::formAttrName, builder.getStringAttr("step"));
  }

private:
  KvGroupOp makeGroup(OpBuilder &builder, Location loc, GroupKey key,
                      ArrayRef<int64_t> layers, int64_t id) {
    auto [window, kvHeads, headDim] = key;
    Type element = cacheElement(builder.getContext(), *kvTypeFromName(dtype));
    int64_t bytes =
        kvHeads * static_cast<int64_t>(kvTileBytes(
                      *cacheType(element), static_cast<uint64_t>(headDim)));
    int64_t stride = (bytes + 63) / 64 * 64;
    SmallVector<int64_t> kOffsets, vOffsets;
    int64_t offset = 0;
    for (size_t i = 0; i < layers.size(); ++i) {
      kOffsets.push_back(offset);
      vOffsets.push_back(offset + stride);
      offset += 2 * stride;
    }
    std::string name =
        window > 0 ? ("window" + std::to_string(window)) : std::string("full");
    if (SymbolTable::lookupSymbolIn(getOperation(), name))
      name += "_" + std::to_string(id);
    return builder.create<KvGroupOp>(
        loc, builder.getStringAttr(name), builder.getI64IntegerAttr(id),
        KvKindAttr::get(builder.getContext(),
                        window > 0 ? KvKind::Window : KvKind::Full),
        builder.getI64IntegerAttr(window), TypeAttr::get(element),
        builder.getI64IntegerAttr(kvHeads), builder.getI64IntegerAttr(headDim),
        builder.getDenseI64ArrayAttr(layers), builder.getI64IntegerAttr(offset),
        builder.getDenseI64ArrayAttr(kOffsets),
        builder.getDenseI64ArrayAttr(vOffsets), StringAttr());
  }
};

} // namespace
} // namespace lathe::passes

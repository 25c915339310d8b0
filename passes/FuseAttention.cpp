#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace lathe::ir;

namespace lathe::passes {
#define GEN_PASS_DEF_FUSEATTENTION
#include "passes/Passes.h.inc"

namespace {

/// Looks through lathe.transpose and lathe.repeat_heads: the heads [T, H, D]
/// that `value` [H', T, D] was made from, and how often each was repeated.
Value sourceHeads(Value value, int64_t &times) {
  times = 1;
  auto transpose = value.getDefiningOp<TransposeOp>();
  if (!transpose)
    return {};
  Value heads = transpose.getInput();
  if (auto repeat = heads.getDefiningOp<RepeatHeadsOp>()) {
    times = repeat.getTimes();
    return repeat.getInput();
  }
  return heads;
}

/// The parts of a decomposed attention.
struct Parts {
  Value query, key, value;
  MaskOp mask;
  float scale = 1, softcap = 0;
  /// Why it cannot be fused; empty: it can.
  StringRef mismatch;
};

/// The attention that the transpose `root` ends.
Parts matchAttention(TransposeOp root) {
  Parts parts;
  auto refuse = [&](StringRef why) {
    parts.mismatch = why;
    return parts;
  };
  auto product = root.getInput().getDefiningOp<MatmulOp>();
  auto softmax =
      product ? product.getLhs().getDefiningOp<SoftmaxOp>() : nullptr;
  if (!softmax || product.getTransposeB())
    return refuse("it does not end with a product of weights and values");
  parts.mask = softmax.getInput().getDefiningOp<MaskOp>();
  if (!parts.mask)
    return refuse("its softmax reads no lathe.mask");
  Value scores = parts.mask.getInput();
  if (auto cap = scores.getDefiningOp<SoftcapOp>()) {
    parts.softcap = cap.getCap().convertToFloat();
    scores = cap.getInput();
  }
  if (auto factor = scores.getDefiningOp<ScaleOp>()) {
    parts.scale = factor.getFactor().convertToFloat();
    scores = factor.getInput();
  }
  auto qk = scores.getDefiningOp<MatmulOp>();
  if (!qk || !qk.getTransposeB())
    return refuse("between query times key and its mask is more than a scale "
                  "and then a softcap");
  int64_t queryTimes, keyTimes, valueTimes;
  parts.query = sourceHeads(qk.getLhs(), queryTimes);
  parts.key = sourceHeads(qk.getRhs(), keyTimes);
  parts.value = sourceHeads(product.getRhs(), valueTimes);
  if (!parts.query || !parts.key || !parts.value)
    return refuse("its queries, keys and values are not all transposed heads");
  if (queryTimes != 1 || keyTimes != valueTimes)
    return refuse("its heads are repeated otherwise than keys and values "
                  "equally often");
  return parts;
}

struct FusePattern : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TransposeOp root,
                                PatternRewriter &rewriter) const override {
    Parts parts = matchAttention(root);
    if (!parts.mismatch.empty())
      return failure();
    rewriter.replaceOpWithNewOp<AttentionOp>(
        root, root.getType(), parts.query, parts.key, parts.value,
        parts.mask.getPositions(), rewriter.getF32FloatAttr(parts.scale),
        parts.mask.getWindowAttr(), rewriter.getF32FloatAttr(parts.softcap));
    return success();
  }
};

/// Says why the attention of a softmax is left as it is.
void remarkUnfused(SoftmaxOp softmax) {
  StringRef why = "no transposed product of its weights and values follows";
  for (Operation *product : softmax->getUsers())
    if (auto matmul = dyn_cast<MatmulOp>(product))
      for (Operation *user : matmul->getUsers())
        if (auto root = dyn_cast<TransposeOp>(user))
          why = matchAttention(root).mismatch;
  emitRemark(softmax.getLoc())
      << "attention is not fused, because " << why
      << "; only a fused one gets a KV cache and a kernel of its own";
}

struct FuseAttentionPass : impl::FuseAttentionBase<FuseAttentionPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FusePattern>(&getContext());
    if (failed(
            applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([&](AttentionOp) { ++fused; });
    getOperation().walk(remarkUnfused);
  }
};

} // namespace
} // namespace lathe::passes

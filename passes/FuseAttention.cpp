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

struct FusePattern : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TransposeOp root,
                                PatternRewriter &rewriter) const override {
    auto product = root.getInput().getDefiningOp<MatmulOp>();
    if (!product || product.getTransposeB())
      return failure();
    auto softmax = product.getLhs().getDefiningOp<SoftmaxOp>();
    if (!softmax)
      return failure();
    auto mask = softmax.getInput().getDefiningOp<MaskOp>();
    if (!mask)
      return failure();
    Value scores = mask.getInput();
    float softcap = 0, scale = 1;
    if (auto cap = scores.getDefiningOp<SoftcapOp>()) {
      softcap = cap.getCap().convertToFloat();
      scores = cap.getInput();
    }
    if (auto factor = scores.getDefiningOp<ScaleOp>()) {
      scale = factor.getFactor().convertToFloat();
      scores = factor.getInput();
    }
    auto qk = scores.getDefiningOp<MatmulOp>();
    if (!qk || !qk.getTransposeB())
      return failure();
    int64_t queryTimes, keyTimes, valueTimes;
    Value query = sourceHeads(qk.getLhs(), queryTimes);
    Value key = sourceHeads(qk.getRhs(), keyTimes);
    Value value = sourceHeads(product.getRhs(), valueTimes);
    if (!query || !key || !value || queryTimes != 1 || keyTimes != valueTimes)
      return failure();
    rewriter.replaceOpWithNewOp<AttentionOp>(
        root, root.getType(), query, key, value, mask.getPositions(),
        rewriter.getF32FloatAttr(scale), mask.getWindowAttr(),
        rewriter.getF32FloatAttr(softcap));
    return success();
  }
};

struct FuseAttentionPass : impl::FuseAttentionBase<FuseAttentionPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FusePattern>(&getContext());
    if (failed(
            applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([&](AttentionOp) { ++fused; });
  }
};

} // namespace
} // namespace lathe::passes

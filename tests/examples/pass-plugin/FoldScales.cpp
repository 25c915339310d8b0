/// \file
/// An example of a pass plugin: two scales in a row become one.
///
/// Before:
///   %1 = lathe.scale %0 by 2.0
///   %2 = lathe.scale %1 by 3.0
/// After:
///   %2 = lathe.scale %0 by 6.0
#include "ir/lathe/Lathe.h"
#include "passes/Plugin.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using lathe::ir::ScaleOp;

namespace {

struct FoldTwoScales : OpRewritePattern<ScaleOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScaleOp op,
                                PatternRewriter &rewriter) const override {
    auto before = op.getInput().getDefiningOp<ScaleOp>();
    if (!before)
      return failure();
    float factor =
        op.getFactor().convertToFloat() * before.getFactor().convertToFloat();
    // The new op keeps the place of both in the model.
    rewriter.replaceOpWithNewOp<ScaleOp>(op, op.getType(), before.getInput(),
                                         rewriter.getF32FloatAttr(factor));
    return success();
  }
};

struct FoldScalesPass : PassWrapper<FoldScalesPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FoldScalesPass)

  StringRef getArgument() const override { return "fold-scales"; }
  StringRef getDescription() const override {
    return "Two scales in a row become one";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<lathe::ir::LatheDialect>();
  }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldTwoScales>(&getContext());
    if (failed(
            applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

void registerPasses() { PassRegistration<FoldScalesPass>(); }

} // namespace

LATHE_PASS_PLUGIN("fold-scales", registerPasses)

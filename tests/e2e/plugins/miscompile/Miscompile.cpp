/// \file
/// Passes with a fault each, as people make them; `--check-passes` must name
/// the pass, the op and its place.
#include "ir/kernel/Kernel.h"
#include "ir/lathe/Lathe.h"
#include "passes/Plugin.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace lathe::ir;

namespace {

/// A pass around a function.
template <typename Derived>
struct Broken : PassWrapper<Derived, OperationPass<ModuleOp>> {
  StringRef getArgument() const override { return Derived::name; }
  StringRef getDescription() const override { return "A planted fault"; }
};

/// A norm of one layer gets the wrong epsilon.
struct BreakEpsilon : Broken<BreakEpsilon> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BreakEpsilon)
  static constexpr llvm::StringLiteral name = "break-epsilon";

  void runOnOperation() override {
    getOperation().walk([&](RmsNormOp norm) {
      if (norm.getWeight() == "blk.1.ffn_norm")
        norm.setEpsilonAttr(Builder(&getContext()).getF32FloatAttr(0.1f));
    });
  }
};

/// Keys and values of one layer change places.
struct BreakValues : Broken<BreakValues> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BreakValues)
  static constexpr llvm::StringLiteral name = "break-values";

  void runOnOperation() override {
    int layer = 0;
    auto swap = [&](OpOperand &key, OpOperand &value) {
      if (layer++ != 2)
        return;
      Value was = key.get();
      key.set(value.get());
      value.set(was);
    };
    getOperation().walk([&](Operation *op) {
      if (auto attention = dyn_cast<AttentionOp>(op))
        swap(attention.getKeyMutable(), attention.getValueMutable());
      if (auto append = dyn_cast<KvAppendOp>(op))
        swap(append.getKeyMutable(), append.getValueMutable());
    });
  }
};

/// Each row reads only what was in the cache before its step.
struct BreakOrder : Broken<BreakOrder> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BreakOrder)
  static constexpr llvm::StringLiteral name = "break-order";

  void runOnOperation() override {
    getOperation().walk([&](PagedAttentionOp attention) {
      if (auto append = attention.getBatch().getDefiningOp<KvAppendOp>())
        attention.getBatchMutable().set(append.getBatch());
    });
  }
};

/// The head multiplies by another matrix' bits.
struct BreakHead : Broken<BreakHead> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BreakHead)
  static constexpr llvm::StringLiteral name = "break-head";

  void runOnOperation() override {
    getOperation().walk([&](LinearOp linear) {
      if (linear.getWeight() == "output")
        linear.setWeight("token_embd");
    });
  }
};

/// The epilogue of a kernel subtracts the residual.
struct BreakKernel : Broken<BreakKernel> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BreakKernel)
  static constexpr llvm::StringLiteral name = "break-kernel";

  void runOnOperation() override {
    getOperation().walk([&](arith::AddFOp add) {
      OpBuilder builder(add);
      Value difference = builder.create<arith::SubFOp>(
          add.getLoc(), add.getLhs(), add.getRhs());
      add.getResult().replaceAllUsesWith(difference);
      add.erase();
    });
  }
};

void registerPasses() {
  PassRegistration<BreakEpsilon>();
  PassRegistration<BreakValues>();
  PassRegistration<BreakOrder>();
  PassRegistration<BreakHead>();
  PassRegistration<BreakKernel>();
}

} // namespace

LATHE_PASS_PLUGIN("miscompile", registerPasses)

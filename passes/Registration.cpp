#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"

using namespace lathe;

namespace lathe::passes {
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"
} // namespace lathe::passes

void passes::registerDialects(mlir::DialectRegistry &registry) {
  registry
      .insert<ir::LatheDialect, ir::KernelDialect, mlir::arith::ArithDialect,
              mlir::math::MathDialect, mlir::func::FuncDialect>();
}

void passes::registerAllPasses() {
  registerLathePasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
}

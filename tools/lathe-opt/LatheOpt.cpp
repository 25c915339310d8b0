/// \file
/// lathe-opt: mlir-opt for Lathe's dialects and passes.
#include "ir/kernel/Kernel.h"
#include "ir/lathe/Lathe.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  lathe::passes::registerDialects(registry);
  lathe::passes::registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Lathe's optimizer driver\n", registry));
}

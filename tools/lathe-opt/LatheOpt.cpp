/// \file
/// lathe-opt: mlir-opt for Lathe's dialects and passes.
#include "ir/kernel/Kernel.h"
#include "ir/lathe/Lathe.h"
#include "passes/Passes.h"
#include "passes/PluginLoader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

/// Refuses plugins for other versions before MLIR loads them.
static bool checkPlugins(int argc, char **argv) {
  constexpr std::string_view flag = "-load-pass-plugin";
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument.starts_with("--"))
      argument.remove_prefix(1);
    if (!argument.starts_with(flag))
      continue;
    argument.remove_prefix(flag.size());
    std::string path;
    if (argument.starts_with("="))
      path = argument.substr(1);
    else if (argument.empty() && i + 1 < argc)
      path = argv[i + 1];
    if (auto ok = lathe::passes::checkPassPlugin(path); !ok) {
      llvm::errs() << "lathe-opt: " << ok.error().message << "\n";
      return false;
    }
  }
  return true;
}

int main(int argc, char **argv) {
  if (!checkPlugins(argc, argv))
    return 1;
  mlir::DialectRegistry registry;
  lathe::passes::registerDialects(registry);
  lathe::passes::registerAllPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Lathe's optimizer driver\n", registry));
}

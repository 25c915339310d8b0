/// \file
/// lathe-opt: mlir-opt for Lathe's dialects and passes.
#include "codegen/IrText.h"
#include "ir/kernel/Kernel.h"
#include "ir/lathe/Lathe.h"
#include "passes/Passes.h"
#include "passes/PluginLoader.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

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

/// MLIR's own driver, which hands files to the parser as they are, for a buffer
/// that its parser can stand.
static mlir::LogicalResult runOn(llvm::StringRef input, llvm::StringRef output,
                                 mlir::DialectRegistry &registry) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer =
      mlir::openInputFile(input, &error);
  if (!buffer) {
    llvm::errs() << "lathe-opt: " << error << "\n";
    return mlir::failure();
  }
  if (auto ok = lathe::codegen::checkIrText(buffer->getBuffer()); !ok) {
    llvm::errs() << "lathe-opt: " << input << ": " << ok.error().message
                 << "\n";
    return mlir::failure();
  }
  auto file = mlir::openOutputFile(output, &error);
  if (!file) {
    llvm::errs() << "lathe-opt: " << error << "\n";
    return mlir::failure();
  }
  if (failed(mlir::MlirOptMain(file->os(), std::move(buffer), registry,
                               mlir::MlirOptMainConfig::createFromCLOptions())))
    return mlir::failure();
  file->keep();
  return mlir::success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  if (!checkPlugins(argc, argv))
    return 1;
  mlir::DialectRegistry registry;
  lathe::passes::registerDialects(registry);
  lathe::passes::registerAllPasses();
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "Lathe's optimizer driver\n", registry);
  return mlir::asMainReturnCode(runOn(input, output, registry));
}

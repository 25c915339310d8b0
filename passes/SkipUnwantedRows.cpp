#include "passes/Passes.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace lathe::ir;

namespace lathe::passes {
#define GEN_PASS_DEF_SKIPUNWANTEDROWS
#include "passes/Passes.h.inc"

namespace {

struct SkipUnwantedRowsPass : impl::SkipUnwantedRowsBase<SkipUnwantedRowsPass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      if (program.getSymName() == "body")
        mark(program);
  }

private:
  void mark(ProgramOp program) {
    // Buffers of which a later launch reads every row.
    llvm::DenseSet<Value> readWhole;
    auto launches = llvm::to_vector(program.getOps<LaunchOp>());
    for (LaunchOp launch : llvm::reverse(launches)) {
      auto kernel = cast<KernelOpInterface>(
          getOperation().lookupSymbol(launch.getKernelAttr()));
      SmallVector<OperandInfo> infos = kernel.operandInfos();
      auto operands = llvm::zip(launch.getBuffers(), infos);
      bool wanted = kernel.isRowLocal();
      for (auto [buffer, info] : operands)
        wanted &= info.role == Role::Read || !readWhole.contains(buffer);
      if (wanted) {
        launch.setWanted(true);
        ++marked;
        continue;
      }
      for (auto [buffer, info] : operands)
        if (info.role != Role::Write)
          readWhole.insert(buffer);
    }
  }
};

} // namespace
} // namespace lathe::passes

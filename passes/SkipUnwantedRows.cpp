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

/// Calls visit(launch, mayBeWanted) for the launches of a program from its end
/// backwards; it returns whether the launch is wanted.
template <typename Visit> void forWanted(ProgramOp program, Visit visit) {
  auto module = program->getParentOfType<ModuleOp>();
  // Buffers of which a later launch reads every row.
  llvm::DenseSet<Value> readWhole;
  auto launches = llvm::to_vector(program.getOps<LaunchOp>());
  for (LaunchOp launch : llvm::reverse(launches)) {
    auto kernel =
        cast<KernelOpInterface>(module.lookupSymbol(launch.getKernelAttr()));
    SmallVector<OperandInfo> infos = kernel.operandInfos();
    bool possible = kernel.isRowLocal();
    for (auto [buffer, info] : llvm::zip(launch.getBuffers(), infos))
      possible &= info.role == Role::Read || !readWhole.contains(buffer);
    if (visit(launch, possible))
      continue;
    for (auto [buffer, info] : llvm::zip(launch.getBuffers(), infos))
      if (info.role != Role::Write)
        readWhole.insert(buffer);
  }
}

struct SkipUnwantedRowsPass : impl::SkipUnwantedRowsBase<SkipUnwantedRowsPass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      if (program.getSymName() == "body")
        forWanted(program, [&](LaunchOp launch, bool possible) {
          launch.setWanted(possible);
          marked += possible;
          return possible;
        });
  }
};

} // namespace

LogicalResult checkWanted(ProgramOp program) {
  LaunchOp wrong;
  forWanted(program, [&](LaunchOp launch, bool possible) {
    if (launch.getWanted() && (!possible || program.getSymName() != "body"))
      wrong = launch;
    return launch.getWanted();
  });
  if (wrong)
    return wrong.emitOpError(
        "is for wanted rows, but a later launch reads every row of a result");
  return success();
}

} // namespace lathe::passes

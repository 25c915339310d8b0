#include "passes/KernelEmitter.h"

#include "kernels/abi/StepArgs.h"
#include "passes/ElementRegion.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace lathe::ir;
using namespace lathe;
using namespace lathe::passes;

KernelTable::KernelTable(ModuleOp module)
    : kernelBuilder(OpBuilder::atBlockEnd(module.getBody())) {}

FlatSymbolRefAttr KernelTable::intern(Operation *kernel) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  // Before it has a name of its own, equal kernels print alike.
  kernel->print(stream, OpPrintingFlags().useLocalScope());
  auto [entry, isNew] = known.try_emplace(text);
  if (!isNew) {
    kernel->erase();
    return FlatSymbolRefAttr::get(entry->second);
  }
  entry->second =
      kernelBuilder.getStringAttr("k" + std::to_string(known.size() - 1));
  SymbolTable::setSymbolName(kernel, entry->second);
  return FlatSymbolRefAttr::get(entry->second);
}

ProgramEmitter::ProgramEmitter(KernelTable &table, ModuleOp module,
                               StringRef name, LaunchRows rows, Location loc)
    : table(table), builder(module.getContext()), launchRows(rows) {
  builder.setInsertionPointToEnd(module.getBody());
  program =
      builder.create<ProgramOp>(loc, builder.getStringAttr(name), StringAttr());
  builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
  table.builder().setInsertionPoint(program);
}

Value ProgramEmitter::lookup(Value value) const {
  return buffers.lookup(storageOf(value));
}

void ProgramEmitter::bind(Value value, Value buffer) {
  buffers[storageOf(value)] = buffer;
}

Value ProgramEmitter::allocate(Location loc, int64_t bytesPerRow,
                               bool replicated) {
  bool tokens = launchRows == LaunchRows::Tokens;
  auto size = SizeAttr::get(builder.getContext(), tokens ? bytesPerRow : 0, 0,
                            0, replicated ? maxReplicatedRows * bytesPerRow : 0,
                            tokens ? 0 : maxHeadRows * bytesPerRow);
  return builder.create<AllocOp>(loc, bufferType(), size, IntegerAttr());
}

bool passes::isReturned(Value value) {
  return llvm::any_of(usersOf(value), llvm::IsaPred<func::ReturnOp>);
}

Value ProgramEmitter::allocateFor(Value value, bool replicated) {
  Value buffer;
  if (isReturned(value)) {
    buffer = stepBuffer(launchRows == LaunchRows::Head ? StepBuffer::Logits
                                                       : StepBuffer::Hidden);
  } else {
    int64_t bytes = 4, rowDims = 0;
    for (int64_t dim : cast<RankedTensorType>(value.getType()).getShape()) {
      bytes *= ShapedType::isDynamic(dim) ? 1 : dim;
      rowDims += ShapedType::isDynamic(dim) ? 1 : 0;
    }
    // Scores of a whole sequence: C is T² where there is no KV cache.
    buffer = rowDims == 2 ? allocatePartials(value.getLoc(), bytes)
                          : allocate(value.getLoc(), bytes, replicated);
  }
  bind(value, buffer);
  return buffer;
}

Value ProgramEmitter::allocatePartials(Location loc, int64_t bytes) {
  return builder.create<AllocOp>(
      loc, bufferType(), SizeAttr::get(builder.getContext(), 0, 0, bytes, 0, 0),
      IntegerAttr());
}

Value ProgramEmitter::weight(FlatSymbolRefAttr symbol) {
  Value &value = weights[symbol];
  if (!value)
    value = builder.create<WeightRefOp>(program.getLoc(), bufferType(), symbol);
  return value;
}

Value ProgramEmitter::kvPool(Location loc, int64_t group, int64_t offset) {
  return builder.create<KvPoolOp>(loc, bufferType(),
                                  builder.getI64IntegerAttr(group),
                                  builder.getI64IntegerAttr(offset));
}

Value ProgramEmitter::stepBuffer(StepBuffer kind) {
  return builder.create<StepBufferOp>(
      program.getLoc(), bufferType(),
      StepBufferAttr::get(builder.getContext(), kind));
}

void ProgramEmitter::launch(Location loc, FlatSymbolRefAttr kernel,
                            ValueRange operands) {
  builder.create<LaunchOp>(loc, kernel, operands, /*wanted=*/UnitAttr(),
                           DenseI64ArrayAttr());
}

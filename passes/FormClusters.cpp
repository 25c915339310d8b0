#include "passes/FunctionFormer.h"

#include "passes/ElementRegion.h"

using namespace mlir;
using namespace lathe::ir;
using namespace lathe;
using namespace lathe::passes;

Operation *FunctionFormer::nextElementwise(const Cluster &cluster) {
  SmallVector<Operation *> users = usersOf(cluster.tip);
  if (users.size() != 1 || !isElementwise(users.front()))
    return nullptr;
  return users.front();
}

bool FunctionFormer::readsOnly(Operation *op, ArrayRef<Value> tips) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    Value storage = storageOf(operand);
    return llvm::is_contained(tips, storage) || emitter.lookup(storage);
  });
}

void FunctionFormer::absorb(Cluster &cluster, Operation *op,
                            ArrayRef<Value> tips) {
  for (Value operand : op->getOperands())
    if (Value storage = storageOf(operand); !llvm::is_contained(tips, storage))
      cluster.elements.insert(storage);
  cluster.ops.push_back(op);
  cluster.tip = op->getResult(0);
  done.insert(op);
}

void FunctionFormer::grow(Cluster &cluster) {
  while (Operation *next = nextElementwise(cluster)) {
    Value tip = cluster.tip;
    if (!readsOnly(next, tip))
      return;
    absorb(cluster, next, tip);
  }
}

void FunctionFormer::buildRegion(const Cluster &cluster, Region &region,
                                 SmallVectorImpl<Side> &sides,
                                 SmallVectorImpl<Value> &sideBuffers) {
  MLIRContext *context = func.getContext();
  Location loc = cluster.tip.getLoc();
  OpBuilder builder(context);
  Block &block = region.emplaceBlock();
  builder.setInsertionPointToEnd(&block);
  Type f32 = builder.getF32Type();
  DenseMap<Value, Value> scalars;
  for (Value root : cluster.roots)
    scalars[root] = block.addArgument(f32, loc);
  auto column = [&](FlatSymbolRefAttr symbol) -> Value {
    sides.push_back(Side::Column);
    sideBuffers.push_back(emitter.weight(symbol));
    return block.addArgument(f32, loc);
  };
  for (auto [root, bias] : llvm::zip(cluster.roots, cluster.biases))
    if (bias)
      scalars[root] =
          builder.create<arith::AddFOp>(loc, scalars[root], column(bias));
  if (cluster.columnScale)
    scalars[cluster.roots.front()] = builder.create<arith::MulFOp>(
        loc, scalars[cluster.roots.front()], column(cluster.columnScale));
  for (Value element : cluster.elements) {
    sides.push_back(Side::Element);
    sideBuffers.push_back(emitter.lookup(element));
    scalars[element] = block.addArgument(f32, loc);
  }
  for (Operation *op : cluster.ops)
    emitElement(builder, op, scalars);
  builder.create<YieldOp>(loc, scalars.lookup(cluster.tip));
}

QuantizeRowsOp FunctionFormer::onlyQuantized(Value value) {
  SmallVector<Operation *> users = usersOf(value);
  if (users.size() != 1)
    return {};
  return dyn_cast<QuantizeRowsOp>(users.front());
}

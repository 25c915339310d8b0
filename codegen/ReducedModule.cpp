#include "codegen/ReducedModule.h"

#include "codegen/Trace.h"
#include "ir/lathe/Lathe.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lathe;
using namespace lathe::codegen;

namespace {

/// "blk.3" of "blk.3.attn_q"; empty for what is in no block.
std::string blockOf(Operation *op) {
  for (const std::string &name : namesOf(op->getLoc())) {
    StringRef rest = name;
    if (!rest.consume_front("blk."))
      continue;
    return "blk." + rest.take_until([](char c) { return c == '.'; }).str();
  }
  return "";
}

} // namespace

ReducedModule codegen::reduceTo(Operation *root, Reduction reduction) {
  auto function = root->getParentOfType<func::FuncOp>();
  auto original = function->getParentOfType<ModuleOp>();
  std::string block = blockOf(root);
  auto isKept = [&](Operation *op) {
    return op && (!reduction.sameBlock || blockOf(op) == block);
  };

  // The slice, and the values at its border.
  llvm::SetVector<Operation *> kept;
  llvm::SetVector<Value> border;
  SmallVector<Operation *> pending = {root};
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (!kept.insert(op))
      continue;
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (isKept(producer))
        pending.push_back(producer);
      else
        border.insert(operand);
    }
  }

  ReducedModule reduced;
  reduced.function = function.getSymName().str();
  OpBuilder builder(original.getContext());
  reduced.module = ModuleOp::create(original.getLoc());
  (*reduced.module)->setAttrs(original->getAttrDictionary());
  builder.setInsertionPointToEnd(reduced.module->getBody());

  llvm::SetVector<StringAttr> symbols;
  for (Operation *op : kept)
    op->getAttrDictionary().walk(
        [&](FlatSymbolRefAttr symbol) { symbols.insert(symbol.getAttr()); });
  for (Operation &op : original.getOps())
    if (auto name =
            op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
        name && (reduction.allSymbols ? !isa<func::FuncOp>(op)
                                      : symbols.contains(name)))
      builder.clone(op);

  // Rows of tokens first, as the runtime passes them; the batch last.
  SmallVector<Value> values = border.takeVector();
  llvm::stable_sort(values, [](Value a, Value b) {
    return !isa<ir::BatchType>(a.getType()) && isa<ir::BatchType>(b.getType());
  });
  SmallVector<Type> types;
  bool batch = false;
  for (Value value : values) {
    if (isa<ir::BatchType>(value.getType())) {
      // Whatever was appended before, there is one batch at the start.
      if (!batch)
        types.push_back(value.getType());
      batch = true;
      continue;
    }
    types.push_back(value.getType());
    reduced.inputs.push_back(value);
  }
  auto made = builder.create<func::FuncOp>(
      function.getLoc(), reduced.function,
      builder.getFunctionType(types, root->getResultTypes()));
  Block *body = made.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping mapping;
  unsigned next = 0;
  for (Value value : values)
    mapping.map(value, isa<ir::BatchType>(value.getType())
                           ? body->getArguments().back()
                           : body->getArgument(next++));
  for (Operation &op : function.getBody().front())
    if (kept.contains(&op))
      builder.clone(op, mapping);
  SmallVector<Value> results;
  for (Value result : root->getResults())
    results.push_back(mapping.lookup(result));
  builder.create<func::ReturnOp>(root->getLoc(), results);
  return reduced;
}

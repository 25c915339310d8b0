#include "passes/ContractFormer.h"
#include "passes/ElementRegion.h"
#include "passes/FunctionFormer.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lathe::ir;
using namespace lathe;
using namespace lathe::passes;

void FunctionFormer::remarkContracted(ArrayRef<Operation *> ops) {
  SetVector<StringRef> names;
  Operation *place = nullptr;
  bool isFused = false, isDecomposed = false;
  for (Operation *op : ops) {
    if (isa<LinearOp, MergedLinearOp>(op)) {
      emitRemark(op->getLoc())
          << "quantized weights are multiplied by f32 activations in plain "
             "loops; quantize-activations would make the activations int8 "
             "blocks";
      continue;
    }
    names.insert(op->getName().getStringRef());
    bool isCore = isa<AttentionOp, SoftmaxOp>(op);
    place = !place || isCore ? op : place;
    isFused |= isa<AttentionOp>(op);
    isDecomposed |= isa<SoftmaxOp>(op);
  }
  if (!place)
    return;
  std::string list = llvm::join(names, ", ");
  const char *verb = names.size() == 1 ? " runs" : " run";
  if (stepForm) {
    emitRemark(place->getLoc())
        << list << verb << " as plain loops: no kernel takes "
        << (names.size() == 1 ? "it" : "them") << " in";
    return;
  }
  emitRemark(place->getLoc())
      << (isDecomposed && !isFused
              ? "attention is not fused, so there is no KV cache: "
              : "there is no KV cache: ")
      << list << verb
      << " as plain loops over the whole sequence at each step; "
      << (isDecomposed ? "fuse-attention and kv-cache-layout"
                       : "kv-cache-layout")
      << " would avoid it";
}

void FunctionFormer::remarkUnmerged(Operation *op, Value input) {
  if (gemmInputs.insert(input).second)
    return;
  emitRemark(op->getLoc())
      << op->getName()
      << " is a kernel of its own, though another reads the same input; "
         "merge-linears would make them one";
}

bool FunctionFormer::canPair(Operation *op, Operation *next,
                             FlatSymbolRefAttr first, FlatSymbolRefAttr second,
                             ArrayRef<Value> tips) {
  auto refuse = [&](const Twine &why) {
    emitRemark(next->getLoc())
        << next->getName()
        << " is a kernel of its own, not part of the linears that it "
           "combines, because "
        << why;
    explained.insert(next);
    return false;
  };
  RankedTensorType a = weightOf(op, first).getTensorType();
  RankedTensorType b = weightOf(op, second).getTensorType();
  if (a != b) {
    auto format = [](RankedTensorType type) -> StringRef {
      auto block = cast<BlockType>(type.getElementType());
      return kernels::traitsOf(block.getFormat()).mnemonic;
    };
    return refuse("their weights have different formats, " + format(a) +
                  " and " + format(b));
  }
  if (a.getDimSize(0) % target.pairRows != 0)
    return refuse("their " + Twine(a.getDimSize(0)) +
                  " rows are no multiple of " + Twine(target.pairRows));
  if (!readsOnly(next, tips))
    return refuse("another of its inputs is not stored yet");
  return true;
}

void FunctionFormer::remarkOwnKernel(Operation *op) {
  if (explained.contains(op))
    return;
  // What could have taken it in is the kernel that makes its last operand.
  SmallVector<Value> inputs;
  for (Value operand : op->getOperands())
    inputs.push_back(storageOf(operand));
  Operation *producer = nullptr;
  for (Value input : inputs)
    if (Operation *maker = input.getDefiningOp())
      if (!producer || producer->isBeforeInBlock(maker))
        producer = maker;
  bool isShared = llvm::any_of(inputs, [&](Value input) {
    return input.getDefiningOp() == producer && usersOf(input).size() > 1;
  });
  // Of plain loops there is a remark already.
  if (producer && isContracted(producer, stepForm, symbols))
    return;
  InFlightDiagnostic remark = emitRemark(op->getLoc());
  remark << op->getName() << " is a kernel of its own, because ";
  if (!producer)
    remark << "its input comes from outside of the function";
  else if (isShared)
    remark << "others read its input too; as the only reader it would be part "
              "of the kernel that makes it";
  else if (isa<PagedAttentionOp>(producer) && isa<QuantizeRowsOp>(op))
    remark << "attention heads of "
           << cast<RankedTensorType>(producer->getResult(0).getType())
                  .getShape()
                  .back()
           << " values are no whole blocks of 32";
  else if (isa<PagedAttentionOp, EmbedOp>(producer))
    remark << "the kernel of " << producer->getName() << " does not take it in";
  else
    remark << "one of its inputs is not stored yet where another is made";
}

#include "passes/ContractFormer.h"

#include "passes/ElementRegion.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lathe::ir;
using namespace lathe;
using namespace lathe::passes;

namespace {

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The dimensions of a value, -1 for the rows.
SmallVector<int64_t> dimsOf(Value value) {
  SmallVector<int64_t> dims;
  for (int64_t dim : typeOf(value).getShape())
    dims.push_back(ShapedType::isDynamic(dim) ? -1 : dim);
  return dims;
}

/// A kernel in the making; what an op does not use stays neutral.
struct Contract {
  ContractOp op = ContractOp::Map;
  SmallVector<int64_t> dims;
  float value = 0;
  int64_t window = 0;
  float softcap = 0;
  RopeStyle style = RopeStyle::Adjacent;
  BlockType weight;
  bool bias = false;
};

class ContractBuilder {
public:
  ContractBuilder(Operation *op, ProgramEmitter &emitter)
      : source(op), emitter(emitter), builder(emitter.kernels().builder()) {}

  LogicalResult launch(const Contract &contract, ArrayRef<Value> inputs,
                       Value result, Operation *elementwise = nullptr) {
    for (Value input : inputs)
      if (!input)
        return source->emitOpError("reads a value that no kernel has stored");
    Location loc = source->getLoc();
    auto kernel = builder.create<ContractKernelOp>(
        loc, emitter.kernels().placeholder(),
        ContractOpAttr::get(builder.getContext(), contract.op),
        builder.getDenseI64ArrayAttr(contract.dims),
        builder.getF32FloatAttr(contract.value),
        builder.getI64IntegerAttr(contract.window),
        builder.getF32FloatAttr(contract.softcap),
        RopeStyleAttr::get(builder.getContext(), contract.style),
        contract.weight ? TypeAttr::get(contract.weight) : TypeAttr(),
        builder.getBoolAttr(contract.bias), StringAttr(),
        elementwise ? 1u : 0u);
    if (elementwise)
      buildRegion(kernel.getMaps()[0], elementwise);
    SmallVector<Value> operands(inputs);
    operands.push_back(emitter.allocateFor(result));
    emitter.launch(loc, emitter.kernels().intern(kernel), operands);
    return success();
  }

  LogicalResult linear(Value input, FlatSymbolRefAttr weight,
                       FlatSymbolRefAttr bias, Value result) {
    WeightOp decl = lookupWeight(source, weight, symbols);
    RankedTensorType type = decl.getTensorType();
    Contract contract;
    contract.op = ContractOp::Linear;
    contract.dims = {type.getDimSize(1), type.getDimSize(0)};
    contract.weight = cast<BlockType>(type.getElementType());
    contract.bias = static_cast<bool>(bias);
    SmallVector<Value> inputs = {emitter.lookup(input), emitter.weight(weight)};
    if (bias)
      inputs.push_back(emitter.weight(bias));
    return launch(contract, inputs, result);
  }

private:
  void buildRegion(Region &region, Operation *op) {
    OpBuilder inner(op->getContext());
    Block &block = region.emplaceBlock();
    inner.setInsertionPointToEnd(&block);
    DenseMap<Value, Value> scalars;
    // One argument per operand, also where both are the same value.
    for (Value operand : op->getOperands())
      scalars[storageOf(operand)] =
          block.addArgument(inner.getF32Type(), op->getLoc());
    emitElement(inner, op, scalars);
    inner.create<YieldOp>(op->getLoc(), scalars.lookup(op->getResult(0)));
  }

  Operation *source;
  ProgramEmitter &emitter;
  OpBuilder &builder;
  SymbolTableCollection symbols;
};

} // namespace

bool passes::isContracted(Operation *op, bool stepForm,
                          SymbolTableCollection &symbols) {
  if (isa<MatmulOp, SoftmaxOp, MaskOp, TransposeOp, RepeatHeadsOp, AttentionOp>(
          op))
    return true;
  auto norm = dyn_cast<RmsNormOp>(op);
  if (!stepForm &&
      (isa<RopeOp>(op) || (norm && typeOf(norm.getResult()).getRank() == 3)))
    return true;
  if (isElementwise(op)) {
    ArrayRef<int64_t> shape = typeOf(op->getResult(0)).getShape();
    return llvm::count(shape, ShapedType::kDynamic) == 2;
  }
  Value input;
  FlatSymbolRefAttr weight;
  if (auto linear = dyn_cast<LinearOp>(op)) {
    input = linear.getInput();
    weight = linear.getWeightAttr();
  } else if (auto merged = dyn_cast<MergedLinearOp>(op)) {
    input = merged.getInput();
    weight = cast<FlatSymbolRefAttr>(merged.getWeights()[0]);
  } else {
    return false;
  }
  auto block = cast<BlockType>(
      lookupWeight(op, weight, symbols).getTensorType().getElementType());
  return typeOf(input).getElementType().isF32() &&
         !kernels::isFloatFormat(block.getFormat());
}

LogicalResult passes::formContract(Operation *op, ProgramEmitter &emitter) {
  ContractBuilder build(op, emitter);
  auto buffer = [&](Value value) { return emitter.lookup(value); };
  Contract contract;
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](MatmulOp matmul) {
        bool transposed = matmul.getTransposeB();
        contract.op =
            transposed ? ContractOp::MatmulTransposed : ContractOp::Matmul;
        contract.dims = dimsOf(matmul.getLhs());
        contract.dims.push_back(dimsOf(matmul.getRhs())[transposed ? 1 : 2]);
        return build.launch(contract,
                            {buffer(matmul.getLhs()), buffer(matmul.getRhs())},
                            matmul.getResult());
      })
      .Case([&](SoftmaxOp softmax) {
        contract.op = ContractOp::Softmax;
        contract.dims = dimsOf(softmax.getInput());
        return build.launch(contract, {buffer(softmax.getInput())},
                            softmax.getResult());
      })
      .Case([&](MaskOp mask) {
        contract.op = ContractOp::Mask;
        contract.dims = dimsOf(mask.getInput());
        contract.window = mask.getWindow();
        return build.launch(contract, {buffer(mask.getInput())},
                            mask.getResult());
      })
      .Case([&](TransposeOp transpose) {
        contract.op = ContractOp::Transpose;
        contract.dims = dimsOf(transpose.getInput());
        return build.launch(contract, {buffer(transpose.getInput())},
                            transpose.getResult());
      })
      .Case([&](RepeatHeadsOp repeat) {
        contract.op = ContractOp::RepeatHeads;
        contract.dims = dimsOf(repeat.getInput());
        contract.dims.push_back(repeat.getTimes());
        return build.launch(contract, {buffer(repeat.getInput())},
                            repeat.getResult());
      })
      .Case([&](RmsNormOp norm) {
        contract.op = ContractOp::Norm;
        contract.dims = dimsOf(norm.getInput());
        contract.value = norm.getEpsilon().convertToFloat();
        return build.launch(
            contract,
            {buffer(norm.getInput()), emitter.weight(norm.getWeightAttr())},
            norm.getResult());
      })
      .Case([&](RopeOp rope) {
        SymbolTableCollection symbols;
        contract.op = ContractOp::Rope;
        contract.dims = dimsOf(rope.getInput());
        contract.dims.push_back(lookupWeight(rope, rope.getTableAttr(), symbols)
                                    .getTensorType()
                                    .getDimSize(1));
        contract.style = rope.getStyle();
        return build.launch(
            contract,
            {buffer(rope.getInput()), emitter.weight(rope.getTableAttr())},
            rope.getResult());
      })
      .Case([&](AttentionOp attention) {
        ArrayRef<int64_t> query = typeOf(attention.getQuery()).getShape();
        contract.op = ContractOp::Attention;
        contract.dims = {query[1], typeOf(attention.getKey()).getDimSize(1),
                         query[2]};
        contract.value = attention.getScale().convertToFloat();
        contract.window = attention.getWindow();
        contract.softcap = attention.getSoftcap().convertToFloat();
        return build.launch(contract,
                            {buffer(attention.getQuery()),
                             buffer(attention.getKey()),
                             buffer(attention.getValue())},
                            attention.getResult());
      })
      .Case([&](LinearOp linear) {
        return build.linear(linear.getInput(), linear.getWeightAttr(),
                            linear.getBiasAttr(), linear.getResult());
      })
      .Case([&](MergedLinearOp merged) {
        for (auto [index, weight] : llvm::enumerate(merged.getWeights())) {
          FlatSymbolRefAttr bias;
          if (merged.getBiases())
            bias = dyn_cast<FlatSymbolRefAttr>((*merged.getBiases())[index]);
          if (failed(build.linear(merged.getInput(),
                                  cast<FlatSymbolRefAttr>(weight), bias,
                                  merged.getResults()[index])))
            return failure();
        }
        return success();
      })
      .Default([&](Operation *elementwise) {
        bool two = elementwise->getNumOperands() == 2;
        contract.op = two ? ContractOp::Combine : ContractOp::Map;
        contract.dims = dimsOf(elementwise->getResult(0));
        SmallVector<Value> inputs;
        for (Value operand : elementwise->getOperands())
          inputs.push_back(buffer(operand));
        return build.launch(contract, inputs, elementwise->getResult(0),
                            elementwise);
      });
}

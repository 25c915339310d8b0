#include "ir/interpreter/Interpreter.h"

#include "ir/interpreter/Frame.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace lathe;
using namespace lathe::ir;

WeightProvider::~WeightProvider() = default;

namespace {

/// Whether a tensor is what a type promises.
bool fits(const Tensor &tensor, Type type) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked || ranked.getRank() != static_cast<int64_t>(tensor.rank()))
    return false;
  for (auto [promised, actual] : llvm::zip(ranked.getShape(), tensor.shape()))
    if (!ShapedType::isDynamic(promised) && promised != actual)
      return false;
  Type element = ranked.getElementType();
  return (tensor.isFloat() && element.isF32()) ||
         (tensor.isInt() && element.isInteger(32)) ||
         (tensor.isQ8() && isa<Q8Type>(element));
}

LogicalResult evaluateAny(Operation *op, Frame &frame) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<EmbedOp, PositionsOp, LinearOp, MergedLinearOp, MatmulOp,
            QuantizeRowsOp, ReshapeOp, TransposeOp, RepeatHeadsOp, AddOp, MulOp,
            SiluOp, GeluOp, ScaleOp, SoftcapOp, RmsNormOp, RopeOp, MaskOp,
            SoftmaxOp, AttentionOp, KvAppendOp, PagedAttentionOp>(
          [&](auto typed) { return evaluate(typed, frame); })
      .Default([](Operation *other) {
        return other->emitOpError("is unknown to the interpreter");
      });
}

} // namespace

LogicalResult Frame::set(Operation *op, Value value, Tensor tensor) {
  if (!fits(tensor, value.getType()))
    return op->emitOpError("gives ")
           << tensor.shapeText() << " for " << value.getType();
  tensors.insert_or_assign(value, std::move(tensor));
  return success();
}

LogicalResult lathe::ir::require(Operation *op, bool ok, const Twine &what,
                                 const Frame &frame) {
  if (ok)
    return success();
  InFlightDiagnostic diag = op->emitOpError(what) << "; its operands are";
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()))
      diag << " " << frame[operand].shapeText();
  return diag;
}

FailureOr<Matrix> Frame::matrix(Operation *op, FlatSymbolRefAttr symbol) {
  WeightOp weight = lookupWeight(op, symbol, symbols);
  if (!weight)
    return failure();
  RankedTensorType type = weight.getTensorType();
  auto block = dyn_cast<BlockType>(type.getElementType());
  if (!block || type.getRank() != 2)
    return op->emitOpError("needs ") << symbol << " to be a matrix of blocks";
  auto found = weights.rows(weight);
  if (!found)
    return op->emitOpError("cannot read ")
           << symbol << ": " << found.error().message;
  Matrix matrix = {block.getFormat(), type.getDimSize(0), type.getDimSize(1),
                   std::move(*found)};
  if (static_cast<int64_t>(matrix.rows.size()) != matrix.n)
    return op->emitOpError("gets ") << matrix.rows.size() << " rows of "
                                    << symbol << ", not " << matrix.n;
  return matrix;
}

FailureOr<Tensor> Frame::table(Operation *op, FlatSymbolRefAttr symbol) {
  WeightOp weight = lookupWeight(op, symbol, symbols);
  if (!weight)
    return failure();
  RankedTensorType type = weight.getTensorType();
  if (!type.getElementType().isF32())
    return op->emitOpError("needs ") << symbol << " to be f32";
  auto found = weights.values(weight);
  if (!found)
    return op->emitOpError("cannot read ")
           << symbol << ": " << found.error().message;
  if (static_cast<int64_t>(found->size()) != type.getNumElements())
    return op->emitOpError("gets ") << found->size() << " values of " << symbol
                                    << ", not " << type.getNumElements();
  return Tensor::floats(type.getShape().vec(), std::move(*found));
}

FailureOr<std::vector<Tensor>> Interpreter::run(std::string_view function,
                                                std::vector<Tensor> arguments) {
  return execute(function, std::move(arguments), nullptr, nullptr);
}

FailureOr<std::vector<Tensor>>
Interpreter::runStep(std::string_view function, std::vector<Tensor> arguments,
                     std::span<const StepRow> rows, KvStore &store) {
  std::vector<StepRow> copy(rows.begin(), rows.end());
  return execute(function, std::move(arguments), &copy, &store);
}

FailureOr<std::vector<Tensor>>
Interpreter::execute(std::string_view name, std::vector<Tensor> arguments,
                     const std::vector<StepRow> *rows, KvStore *store) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function || !function.getBody().hasOneBlock())
    return module.emitError("the interpreter needs a function @")
           << StringRef(name) << " of one block";
  Frame frame(weights, rows);
  size_t next = 0;
  for (BlockArgument argument : function.getArguments()) {
    if (isa<BatchType>(argument.getType())) {
      if (!store)
        return function.emitOpError("takes a batch: run it as a step");
      frame.setBatch(argument, BatchValue(*store));
      continue;
    }
    if (next == arguments.size())
      return function.emitOpError("takes more than the ")
             << next << " arguments given";
    if (failed(frame.set(function, argument, std::move(arguments[next++]))))
      return failure();
  }
  if (next != arguments.size())
    return function.emitOpError("takes ")
           << next << " arguments, not " << arguments.size();

  for (Operation &op : function.getBody().front()) {
    if (isa<func::ReturnOp>(op)) {
      std::vector<Tensor> results;
      for (Value value : op.getOperands()) {
        if (!isa<RankedTensorType>(value.getType()))
          return op.emitOpError("can return tensors only");
        results.push_back(frame[value]);
      }
      if (store)
        for (const auto &append : frame.appends)
          for (const auto &[place, entry] : *append)
            store->put(place, entry);
      return results;
    }
    if (failed(evaluateAny(&op, frame)))
      return failure();
    if (!hook)
      continue;
    SmallVector<const Tensor *> results;
    for (Value result : op.getResults())
      if (isa<RankedTensorType>(result.getType()))
        results.push_back(&frame[result]);
    if (!results.empty())
      hook(&op, {results.data(), results.size()});
  }
  return function.emitOpError("does not end in a return");
}

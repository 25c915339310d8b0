#include "passes/ElementRegion.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lathe::ir;
using namespace lathe;

bool passes::isElementwise(Operation *op) {
  return isa<AddOp, MulOp, SiluOp, GeluOp, ScaleOp, SoftcapOp>(op);
}

Value passes::storageOf(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>())
    value = reshape.getInput();
  return value;
}

SmallVector<Operation *> passes::usersOf(Value value) {
  SetVector<Operation *> users;
  SmallVector<Value> worklist = {value};
  while (!worklist.empty())
    for (Operation *user : worklist.pop_back_val().getUsers()) {
      if (auto reshape = dyn_cast<ReshapeOp>(user))
        worklist.push_back(reshape.getResult());
      else
        users.insert(user);
    }
  return users.takeVector();
}

void passes::emitElement(OpBuilder &builder, Operation *op,
                         DenseMap<Value, Value> &scalars) {
  Location loc = op->getLoc();
  auto operand = [&](unsigned index) {
    return scalars.lookup(storageOf(op->getOperand(index)));
  };
  auto constant = [&](float value) -> Value {
    return builder.create<arith::ConstantOp>(loc,
                                             builder.getF32FloatAttr(value));
  };
  Value result;
  if (isa<AddOp>(op)) {
    result = builder.create<arith::AddFOp>(loc, operand(0), operand(1));
  } else if (isa<MulOp>(op)) {
    result = builder.create<arith::MulFOp>(loc, operand(0), operand(1));
  } else if (auto scale = dyn_cast<ScaleOp>(op)) {
    result = builder.create<arith::MulFOp>(
        loc, operand(0), constant(scale.getFactor().convertToFloat()));
  } else if (auto softcap = dyn_cast<SoftcapOp>(op)) {
    float cap = softcap.getCap().convertToFloat();
    Value inner =
        builder.create<arith::MulFOp>(loc, operand(0), constant(1.0f / cap));
    Value bent = builder.create<math::TanhOp>(loc, inner);
    result = builder.create<arith::MulFOp>(loc, bent, constant(cap));
  } else if (isa<SiluOp>(op)) {
    Value x = operand(0);
    Value e =
        builder.create<math::ExpOp>(loc, builder.create<arith::NegFOp>(loc, x));
    Value below = builder.create<arith::AddFOp>(loc, constant(1.0f), e);
    result = builder.create<arith::DivFOp>(loc, x, below);
  } else if (isa<GeluOp>(op)) {
    // numerics.md, "Element regions": multiplied left to right.
    Value x = operand(0);
    Value cube = builder.create<arith::MulFOp>(
        loc, builder.create<arith::MulFOp>(loc, x, x), x);
    Value inner = builder.create<arith::AddFOp>(
        loc, x, builder.create<arith::MulFOp>(loc, constant(0.044715f), cube));
    Value bent = builder.create<math::TanhOp>(
        loc,
        builder.create<arith::MulFOp>(loc, constant(0.7978845608f), inner));
    Value half = builder.create<arith::MulFOp>(loc, constant(0.5f), x);
    result = builder.create<arith::MulFOp>(
        loc, half, builder.create<arith::AddFOp>(loc, constant(1.0f), bent));
  } else {
    llvm_unreachable("not elementwise");
  }
  scalars[op->getResult(0)] = result;
}

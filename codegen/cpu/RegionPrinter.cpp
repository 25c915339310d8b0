#include "codegen/cpu/RegionPrinter.h"

#include "ir/kernel/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstdio>

using namespace mlir;
using namespace lathe;

std::string codegen::floatLiteral(float value) {
  if (std::isnan(value))
    return "__builtin_nanf(\"\")";
  if (std::isinf(value))
    return value > 0 ? "__builtin_inff()" : "-__builtin_inff()";
  char text[48];
  std::snprintf(text, sizeof text, "%af /* %.9g */", static_cast<double>(value),
                static_cast<double>(value));
  // %a has no suffix of its own: "0x1.5p-3f" is a float literal.
  return text;
}

void codegen::printMap(raw_ostream &os, Region &region, unsigned values,
                       StringRef indent) {
  Block &block = region.front();
  DenseMap<Value, std::string> names;
  os << indent << "template <typename V>\n" << indent << "static inline V map(";
  for (BlockArgument argument : block.getArguments()) {
    unsigned index = argument.getArgNumber();
    std::string name = index < values ? ("x" + std::to_string(index))
                                      : ("s" + std::to_string(index - values));
    os << (index ? ", V " : "V ") << name;
    names[argument] = name;
  }
  os << ") {\n";
  for (Operation &op : block) {
    auto operand = [&](unsigned i) { return names.lookup(op.getOperand(i)); };
    auto binary = [&](StringRef sign) {
      return operand(0) + " " + sign.str() + " " + operand(1);
    };
    auto call = [&](StringRef function) {
      std::string text = function.str() + "(";
      for (unsigned i = 0; i < op.getNumOperands(); ++i)
        text += (i ? ", " : "") + operand(i);
      return text + ")";
    };
    if (isa<ir::YieldOp>(op)) {
      os << indent << "  return " << operand(0) << ";\n";
      continue;
    }
    std::string value =
        TypeSwitch<Operation *, std::string>(&op)
            .Case([&](arith::AddFOp) { return binary("+"); })
            .Case([&](arith::SubFOp) { return binary("-"); })
            .Case([&](arith::MulFOp) { return binary("*"); })
            .Case([&](arith::DivFOp) { return binary("/"); })
            .Case([&](arith::NegFOp) { return "-" + operand(0); })
            .Case([&](math::FmaOp) { return call("fma"); })
            .Case([&](math::ExpOp) { return call("exp"); })
            .Case([&](math::TanhOp) { return call("tanh"); })
            .Case([&](math::AbsFOp) { return call("abs"); })
            .Case([&](math::SqrtOp) { return call("sqrt"); })
            .Case([&](arith::ConstantOp constant) {
              float number = cast<FloatAttr>(constant.getValue())
                                 .getValue()
                                 .convertToFloat();
              return "V::splat(" + floatLiteral(number) + ")";
            });
    std::string name = "t" + std::to_string(names.size());
    names[op.getResult(0)] = name;
    os << indent << "  V " << name << " = " << value << ";\n";
  }
  os << indent << "}\n";
}

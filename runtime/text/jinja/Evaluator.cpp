#include "runtime/text/jinja/Interpreter.h"

#include <algorithm>

namespace lathe::runtime::jinja {

// The cases with locals of their own are functions of their own, to keep the
// frame of the recursive eval() small.
Value Interpreter::eval(const Expr &expr) {
  Level level(*this);
  switch (expr.kind) {
  case Expr::Kind::Literal:
    return expr.literal;
  case Expr::Kind::Name:
    return lookup(expr.symbol);
  case Expr::Kind::List:
    return makeSeq(meter, SeqKind::List, evalAll(expr.kids));
  case Expr::Kind::Tuple:
    return makeSeq(meter, SeqKind::Tuple, evalAll(expr.kids));
  case Expr::Kind::Dict:
    return evalDict(expr);
  case Expr::Kind::Attr:
    return attribute(eval(*expr.kids[0]), expr.text);
  case Expr::Kind::Item:
    return evalItem(expr);
  case Expr::Kind::Slice:
    return evalSlice(expr);
  case Expr::Kind::Call:
    return evalCall(expr, nullptr);
  case Expr::Kind::Filter:
    return evalFilter(expr, nullptr);
  case Expr::Kind::Test:
    return evalTest(expr);
  case Expr::Kind::Neg:
  case Expr::Kind::Pos:
    return evalNegation(expr);
  case Expr::Kind::Not:
    return Value(!truthy(eval(*expr.kids[0])));
  case Expr::Kind::And:
  case Expr::Kind::Or:
    return evalLogic(expr);
  case Expr::Kind::Binary:
    return evalBinary(expr);
  case Expr::Kind::Concat:
    return evalConcat(expr);
  case Expr::Kind::Compare:
    return evalCompare(expr);
  case Expr::Kind::Cond:
    return evalCond(expr);
  }
  return Value();
}

Values Interpreter::evalAll(const std::vector<ExprPtr> &exprs) {
  Values values;
  values.reserve(exprs.size());
  for (const ExprPtr &expr : exprs)
    values.push_back(eval(*expr));
  return values;
}

Value Interpreter::evalDict(const Expr &expr) {
  std::vector<std::pair<Value, Value>> entries;
  for (size_t i = 0; i < expr.kids.size(); i += 2) {
    Value key = eval(*expr.kids[i]);
    Value value = eval(*expr.kids[i + 1]);
    insertEntry(meter, entries, std::move(key), std::move(value));
  }
  return makeDict(meter, std::move(entries));
}

Value Interpreter::evalItem(const Expr &expr) {
  Value value = eval(*expr.kids[0]);
  return item(value, eval(*expr.kids[1]));
}

Value Interpreter::evalSlice(const Expr &expr) {
  Value value = eval(*expr.kids[0]);
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i)
    if (expr.kids[i + 1])
      bounds[i] = eval(*expr.kids[i + 1]);
  return slice(value, bounds[0], bounds[1], bounds[2]);
}

void Interpreter::evalArgs(const ArgList &list, Args &args) {
  args.positional = evalAll(list.positional);
  for (const auto &[name, expr] : list.named)
    args.named.emplace_back(name, eval(*expr));
  if (list.star)
    for (Value &value : iterate(eval(*list.star)))
      args.positional.push_back(std::move(value));
  if (!list.doubleStar)
    return;
  Value more = eval(*list.doubleStar);
  if (!more.isDict())
    raise("argument after ** must be a mapping, not {}", typeName(more));
  for (const auto &[key, value] : more.dict()->entries) {
    if (!key.isString())
      raise("keywords must be strings");
    meter.step(1 + args.named.size() / 8);
    for (const auto &[name, old] : args.named)
      if (name == key.text().bytes())
        raise("got multiple values for keyword argument '{}'", name);
    args.named.emplace_back(key.text().bytes(), value);
  }
}

Value Interpreter::evalCall(const Expr &expr, const Value *caller) {
  const Expr &callee = *expr.kids[0];
  Args args;
  auto evaluate = [&] {
    evalArgs(*expr.args, args);
    if (caller)
      args.named.emplace_back("caller", *caller);
  };
  // A method call needs no method object.
  if (callee.kind == Expr::Kind::Attr) {
    Value self = eval(*callee.kids[0]);
    const Builtin *method = findMethod(self, callee.text.text().bytes());
    if (method) {
      evaluate();
      offset = expr.offset;
      return method->call(*this, self, args);
    }
    Value function = attribute(self, callee.text);
    evaluate();
    offset = expr.offset;
    return call(function, args);
  }
  Value function = eval(callee);
  evaluate();
  offset = expr.offset;
  return call(function, args);
}

Value Interpreter::evalFilter(const Expr &expr, const Value *piped) {
  Value value = expr.kids.empty() ? *piped
                : expr.kids[0]->kind == Expr::Kind::Filter
                    ? evalFilter(*expr.kids[0], piped)
                    : eval(*expr.kids[0]);
  Args args;
  evalArgs(*expr.args, args);
  offset = expr.offset;
  if (!expr.builtin)
    raise("no filter named '{}'", expr.text.text().bytes());
  return expr.builtin->call(*this, value, args);
}

Value Interpreter::evalTest(const Expr &expr) {
  Value value = eval(*expr.kids[0]);
  Args args;
  evalArgs(*expr.args, args);
  offset = expr.offset;
  if (!expr.builtin)
    raise("no test named '{}'", expr.text.text().bytes());
  return expr.builtin->call(*this, value, args);
}

Value Interpreter::evalNegation(const Expr &expr) {
  Value value = eval(*expr.kids[0]);
  requireDefined(value);
  bool minus = expr.kind == Expr::Kind::Neg;
  Int i;
  if (value.asInt(i))
    return Value(minus ? -i : i);
  if (const double *d = value.real())
    return Value(minus ? -*d : *d);
  raise("bad operand type for unary {}: '{}'", minus ? '-' : '+',
        typeName(value));
}

Value Interpreter::evalLogic(const Expr &expr) {
  bool stop = expr.kind == Expr::Kind::Or;
  Value value;
  for (const ExprPtr &kid : expr.kids) {
    value = eval(*kid);
    if (truthy(value) == stop)
      break;
  }
  return value;
}

Value Interpreter::evalBinary(const Expr &expr) {
  Value left = eval(*expr.kids[0]);
  Value right = eval(*expr.kids[1]);
  offset = expr.offset;
  return arithmetic(expr.op, left, right);
}

Value Interpreter::evalConcat(const Expr &expr) {
  Builder text(meter);
  for (const ExprPtr &kid : expr.kids)
    appendStr(text, eval(*kid));
  return text.take();
}

Value Interpreter::evalCompare(const Expr &expr) {
  Value left = eval(*expr.kids[0]);
  for (size_t i = 0; i < expr.ops.size(); ++i) {
    Value right = eval(*expr.kids[i + 1]);
    offset = expr.offset;
    if (!compare(expr.ops[i], left, right))
      return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::evalCond(const Expr &expr) {
  if (truthy(eval(*expr.kids[0])))
    return eval(*expr.kids[1]);
  if (expr.kids[2])
    return eval(*expr.kids[2]);
  return undefined("the inline if-expression evaluated to false and no else "
                   "section was defined");
}

} // namespace lathe::runtime::jinja

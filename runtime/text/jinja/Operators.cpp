// Arithmetic, comparison and membership with Python's rules.
#include "runtime/text/jinja/Interpreter.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace lathe::runtime::jinja {

namespace {

constexpr Int int64Max = INT64_MAX;

[[noreturn]] void tooLarge() { raise("integer too large (over 126 bits)"); }

int bitWidth(Int i) {
  auto size = static_cast<unsigned __int128>(i < 0 ? -i : i);
  auto high = static_cast<uint64_t>(size >> 64);
  return high ? 64 + std::bit_width(high)
              : std::bit_width(static_cast<uint64_t>(size));
}

Int multiply(Int a, Int b) {
  // Clang's checked 128-bit product needs a runtime function that libgcc does
  // not have. The bound errs by at most one bit.
  if (bitWidth(a) + bitWidth(b) > 126)
    tooLarge();
  return a * b;
}

/// Every integer stays within 126 bits, so one sum or negation cannot overflow.
Int bounded(Int i) {
  if (bitWidth(i) > 126)
    tooLarge();
  return i;
}

Int floorDivide(Int a, Int b) {
  Int quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Int power(Meter &meter, Int base, Int exponent) {
  if (base == 0 || base == 1)
    return exponent == 0 ? 1 : base;
  if (base == -1)
    return exponent % 2 == 0 ? 1 : -1;
  Int result = 1;
  for (; exponent > 0; --exponent) { // Over 128 turns is too large anyway.
    meter.step();
    result = multiply(result, base);
  }
  return result;
}

/// Python's float modulo: the sign of the divisor.
double floatModulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest == 0)
    return std::copysign(0.0, b);
  return (b < 0) != (rest < 0) ? rest + b : rest;
}

Value integers(Meter &meter, BinaryOp op, Int a, Int b) {
  Int result;
  switch (op) {
  case BinaryOp::Add:
    return Value(bounded(a + b));
  case BinaryOp::Sub:
    return Value(bounded(a - b));
  case BinaryOp::Mul:
    return Value(multiply(a, b));
  case BinaryOp::Div:
    if (b == 0)
      raise("division by zero");
    return Value(static_cast<double>(a) / static_cast<double>(b));
  case BinaryOp::FloorDiv:
    if (b == 0)
      raise("integer division or modulo by zero");
    return Value(b == -1 ? multiply(a, -1) : floorDivide(a, b));
  case BinaryOp::Mod:
    if (b == 0)
      raise("integer modulo by zero");
    if (b == -1)
      return Value(0);
    result = a % b;
    return Value(result != 0 && (result < 0) != (b < 0) ? result + b : result);
  case BinaryOp::Pow:
    if (b >= 0)
      return Value(power(meter, a, b));
    if (a == 0)
      raise("0.0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(a), static_cast<double>(b)));
  }
  return Value();
}

Value reals(BinaryOp op, double a, double b) {
  switch (op) {
  case BinaryOp::Add:
    return Value(a + b);
  case BinaryOp::Sub:
    return Value(a - b);
  case BinaryOp::Mul:
    return Value(a * b);
  case BinaryOp::Div:
    if (b == 0)
      raise("float division by zero");
    return Value(a / b);
  case BinaryOp::FloorDiv: {
    if (b == 0)
      raise("float floor division by zero");
    double rest = floatModulo(a, b);
    double quotient = (a - rest) / b;
    double whole = std::floor(quotient);
    if (quotient == 0)
      return Value(std::copysign(0.0, a / b));
    return Value(quotient - whole > 0.5 ? whole + 1 : whole);
  }
  case BinaryOp::Mod:
    if (b == 0)
      raise("float modulo by zero");
    return Value(floatModulo(a, b));
  case BinaryOp::Pow: {
    if (a == 0 && b < 0)
      raise("0.0 cannot be raised to a negative power");
    if (a < 0 && b != std::floor(b) && std::isfinite(a) && std::isfinite(b))
      raise("complex numbers are not supported");
    double result = std::pow(a, b);
    if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))
      raise("numerical result out of range");
    return Value(result);
  }
  }
  return Value();
}

Value repeat(Meter &meter, const Value &value, Int times) {
  times = std::max<Int>(times, 0);
  if (value.isString()) {
    Builder text(meter);
    if (!value.text().empty())
      for (; times > 0; --times) {
        meter.step();
        text.add(value.text());
      }
    return text.take();
  }
  const SeqBox &seq = *value.seq();
  Int count = static_cast<Int>(seq.items.size());
  if (count == 0)
    return value;
  // Refuse before building what makeSeq would refuse to keep.
  if (times > int64Max / count ||
      times * count > int64Max / static_cast<Int>(sizeof(Value)))
    throw Failure{ErrorKind::Exhausted,
                  "the template repeats a list too often"};
  auto bytes = static_cast<size_t>(times * count) * sizeof(Value);
  meter.reserve(bytes);
  meter.release(bytes);
  meter.step(static_cast<uint64_t>(times * count) / 8);
  Values items;
  items.reserve(static_cast<size_t>(times * count));
  for (; times > 0; --times)
    items.insert(items.end(), seq.items.begin(), seq.items.end());
  return makeSeq(meter, seq.kind, std::move(items));
}

bool isRepeatable(const Value &value) {
  const SeqBox *seq = value.seq();
  return value.isString() ||
         (seq && (seq->kind == SeqKind::List || seq->kind == SeqKind::Tuple));
}

} // namespace

Value Interpreter::arithmetic(BinaryOp op, const Value &a, const Value &b) {
  if (op == BinaryOp::Mod && a.isString())
    return formatPercent(meter, a.text(), b);
  requireDefined(a);
  requireDefined(b);
  Int i, j;
  if (a.asInt(i) && b.asInt(j))
    return integers(meter, op, i, j);
  double x, y;
  if (a.asReal(x) && b.asReal(y))
    return reals(op, x, y);
  if (op == BinaryOp::Mul) {
    if (isRepeatable(a) && b.asInt(j))
      return repeat(meter, a, j);
    if (a.asInt(i) && isRepeatable(b))
      return repeat(meter, b, i);
  }
  if (op == BinaryOp::Add) {
    if (a.isString() && b.isString()) {
      Builder text(meter);
      text.add(a.text());
      text.add(b.text());
      return text.take();
    }
    const SeqBox *s = a.seq(), *t = b.seq();
    if (s && t &&
        ((s->kind == SeqKind::List && t->kind == SeqKind::List) ||
         (s->isTuple() && t->isTuple()))) {
      Values items = s->items;
      items.insert(items.end(), t->items.begin(), t->items.end());
      return makeSeq(meter, s->isTuple() ? SeqKind::Tuple : SeqKind::List,
                     std::move(items));
    }
  }
  static constexpr std::string_view names[] = {"+",  "-", "*", "/",
                                               "//", "%", "**"};
  raise("unsupported operand type(s) for {}: '{}' and '{}'",
        names[static_cast<int>(op)], typeName(a), typeName(b));
}

bool Interpreter::compare(CompareOp op, const Value &a, const Value &b) {
  double x, y;
  switch (op) {
  case CompareOp::Eq:
    return equals(meter, a, b);
  case CompareOp::Ne:
    return !equals(meter, a, b);
  case CompareOp::Lt:
    return lessThan(meter, a, b);
  case CompareOp::Gt:
    return lessThan(meter, b, a);
  case CompareOp::Le:
  case CompareOp::Ge:
    // NaN is neither below nor above nor equal.
    if (a.asReal(x) && b.asReal(y) && (std::isnan(x) || std::isnan(y)))
      return false;
    return op == CompareOp::Le ? !lessThan(meter, b, a)
                               : !lessThan(meter, a, b);
  case CompareOp::In:
    return contains(b, a);
  case CompareOp::NotIn:
    return !contains(b, a);
  }
  return false;
}

bool Interpreter::contains(const Value &container, const Value &value) {
  if (container.isString()) {
    if (!value.isString())
      raise("'in <string>' requires string as left operand, not {}",
            typeName(value));
    const std::string &text = container.text().bytes();
    const std::string &part = value.text().bytes();
    meter.touch(text.size() + part.size());
    // std::string::find takes quadratic time on hostile text; memmem does not.
    return memmem(text.data(), text.size(), part.data(), part.size()) !=
           nullptr;
  }
  if (const DictBox *dict = container.dict()) {
    if (!isHashable(value))
      raise("unhashable type: '{}'", typeName(value));
    return dict->find(meter, value) != nullptr;
  }
  if (const SeqBox *seq = container.seq()) {
    for (const Value &item : seq->items)
      if (equals(meter, item, value))
        return true;
    return false;
  }
  if (Object *object = container.object();
      object && object->kind == Object::Kind::Iterator) {
    auto *iterator = static_cast<Iterator *>(object);
    while (iterator->next < iterator->items.size())
      if (equals(meter, iterator->items[iterator->next++], value))
        return true;
    return false;
  }
  if (!container.isUndefined())
    raise("argument of type '{}' is not iterable", typeName(container));
  return false;
}

} // namespace lathe::runtime::jinja

// The tests of `x is …`.
#include "runtime/text/jinja/Interpreter.h"
#include "runtime/text/jinja/Unicode.h"

namespace lathe::runtime::jinja {

namespace {

Value remainder(Interpreter &in, const Value &a, const Value &b) {
  return in.arithmetic(BinaryOp::Mod, a, b);
}

Value testOdd(Interpreter &in, const Value &self, Args &args) {
  Bound bound("odd", args, {});
  return Value(equals(in.budget(), remainder(in, self, Value(2)), Value(1)));
}

Value testEven(Interpreter &in, const Value &self, Args &args) {
  Bound bound("even", args, {});
  return Value(equals(in.budget(), remainder(in, self, Value(2)), Value(0)));
}

Value testDivisibleby(Interpreter &in, const Value &self, Args &args) {
  Bound bound("divisibleby", args, {"num"}, 1);
  return Value(equals(in.budget(), remainder(in, self, *bound[0]), Value(0)));
}

/// Tests without arguments that look at the value alone.
template <bool (*Predicate)(const Value &)>
Value simple(Interpreter &in, const Value &self, Args &args) {
  Bound bound("test", args, {});
  return Value(Predicate(self));
}

bool isDefined(const Value &v) { return !v.isUndefined(); }
bool isUndefined(const Value &v) { return v.isUndefined(); }
bool isNone(const Value &v) { return v.isNone(); }
bool isBoolean(const Value &v) { return v.boolean(); }
bool isFalse(const Value &v) { return v.boolean() && !*v.boolean(); }
bool isTrue(const Value &v) { return v.boolean() && *v.boolean(); }
bool isInteger(const Value &v) { return v.integer(); }
bool isFloat(const Value &v) { return v.real(); }
bool isString(const Value &v) { return v.isString(); }
bool isMapping(const Value &v) { return v.isDict(); }
bool isNumber(const Value &v) { return v.isNumber(); }
bool isNever(const Value &) { return false; }

bool isSequence(const Value &v) {
  return v.isString() || v.isDict() || v.isUndefined() ||
         (v.isSeq() && !v.seq()->isView());
}

bool isCallable(const Value &v) {
  Object *object = v.object();
  // Undefined has a __call__ that raises.
  if (!object)
    return v.isUndefined();
  return object->kind == Object::Kind::Macro ||
         object->kind == Object::Kind::Method ||
         object->kind == Object::Kind::Function ||
         object->kind == Object::Kind::Joiner ||
         object->kind == Object::Kind::Loop;
}

Value testIterable(Interpreter &in, const Value &self, Args &args) {
  Bound bound("iterable", args, {});
  return Value(in.isIterable(self));
}

/// All cased characters are of the wanted case and there is one.
Value testCase(Interpreter &in, const Value &self, bool upper) {
  Value value = toStr(in.budget(), self);
  const std::string &bytes = value.text().bytes();
  in.budget().step(bytes.size() / 8);
  bool any = false;
  for (size_t at = 0; at < bytes.size(); at += charWidth(bytes, at)) {
    char32_t c = decodeAt(bytes, at);
    if ((upper ? isLower(c) : isUpper(c)) || isTitle(c))
      return Value(false);
    any |= upper ? isUpper(c) : isLower(c);
  }
  return Value(any);
}

Value testLower(Interpreter &in, const Value &self, Args &args) {
  Bound bound("lower", args, {});
  return testCase(in, self, false);
}

Value testUpper(Interpreter &in, const Value &self, Args &args) {
  Bound bound("upper", args, {});
  return testCase(in, self, true);
}

template <CompareOp Op>
Value comparison(Interpreter &in, const Value &self, Args &args) {
  Bound bound("test", args, {"other"}, 1);
  return Value(in.compare(Op, self, *bound[0]));
}

/// Python's `is`, for values whose identity a template can rely on.
Value testSameas(Interpreter &in, const Value &self, Args &args) {
  Bound bound("sameas", args, {"other"}, 1);
  const Value &other = *bound[0];
  bool sameKind = typeName(self) == typeName(other);
  if (const SeqBox *seq = self.seq())
    return Value(seq == other.seq());
  if (const DictBox *dict = self.dict())
    return Value(dict == other.dict());
  if (const UndefinedBox *undefined = self.undefined())
    return Value(undefined == other.undefined());
  return Value(sameKind && equals(in.budget(), self, other));
}

Value testFilter(Interpreter &in, const Value &self, Args &args) {
  Bound bound("filter", args, {});
  return Value(self.isString() && findFilter(self.text().bytes()));
}

Value testTest(Interpreter &in, const Value &self, Args &args) {
  Bound bound("test", args, {});
  return Value(self.isString() && findTest(self.text().bytes()));
}

constexpr Builtin table[] = {
    {"odd", testOdd},
    {"even", testEven},
    {"divisibleby", testDivisibleby},
    {"defined", simple<isDefined>},
    {"undefined", simple<isUndefined>},
    {"none", simple<isNone>},
    {"boolean", simple<isBoolean>},
    {"false", simple<isFalse>},
    {"true", simple<isTrue>},
    {"integer", simple<isInteger>},
    {"float", simple<isFloat>},
    {"string", simple<isString>},
    {"mapping", simple<isMapping>},
    {"number", simple<isNumber>},
    {"sequence", simple<isSequence>},
    {"callable", simple<isCallable>},
    {"escaped", simple<isNever>},
    {"iterable", testIterable},
    {"lower", testLower},
    {"upper", testUpper},
    {"sameas", testSameas},
    {"filter", testFilter},
    {"test", testTest},
    {"in", comparison<CompareOp::In>},
    {"==", comparison<CompareOp::Eq>},
    {"eq", comparison<CompareOp::Eq>},
    {"equalto", comparison<CompareOp::Eq>},
    {"!=", comparison<CompareOp::Ne>},
    {"ne", comparison<CompareOp::Ne>},
    {">", comparison<CompareOp::Gt>},
    {"gt", comparison<CompareOp::Gt>},
    {"greaterthan", comparison<CompareOp::Gt>},
    {">=", comparison<CompareOp::Ge>},
    {"ge", comparison<CompareOp::Ge>},
    {"<", comparison<CompareOp::Lt>},
    {"lt", comparison<CompareOp::Lt>},
    {"lessthan", comparison<CompareOp::Lt>},
    {"<=", comparison<CompareOp::Le>},
    {"le", comparison<CompareOp::Le>},
};

} // namespace

BuiltinTable testTable() { return {table, std::size(table)}; }

} // namespace lathe::runtime::jinja

// Filters that make or take numbers.
#include "runtime/text/jinja/Interpreter.h"
#include "runtime/text/jinja/Unicode.h"

#include <cmath>
#include <cstdlib>
#include <optional>

namespace lathe::runtime::jinja {

namespace {

/// `text` without the whitespace around it and without underscores between
/// digits, as Python's int() and float() read it; nothing if an underscore
/// stands elsewhere.
std::optional<std::string> numberText(std::string_view text) {
  size_t begin = 0, end = text.size();
  while (begin < end && isSpace(decodeAt(text, begin)))
    begin += charWidth(text, begin);
  while (end > begin && isSpace(decodeAt(text, previousChar(text, end))))
    end = previousChar(text, end);
  std::string out;
  for (size_t i = begin; i < end; ++i) {
    if (text[i] != '_') {
      out.push_back(text[i]);
      continue;
    }
    if (i == begin || i + 1 == end || !isalnum(uint8_t(text[i - 1])) ||
        !isalnum(uint8_t(text[i + 1])))
      return std::nullopt;
  }
  return out;
}

/// int(text, base); nothing if it is not a number.
std::optional<Int> parseInt(std::string_view bytes, Int base) {
  std::optional<std::string> text = numberText(bytes);
  if (!text || text->empty())
    return std::nullopt;
  size_t at = 0;
  bool negative = (*text)[0] == '-';
  if (negative || (*text)[0] == '+')
    ++at;
  auto prefix = [&](char letter) {
    return text->size() > at + 2 && (*text)[at] == '0' &&
           ((*text)[at + 1] | 0x20) == letter;
  };
  for (auto [letter, ofBase] :
       {std::pair{'x', 16}, std::pair{'o', 8}, std::pair{'b', 2}})
    if ((base == ofBase || base == 0) && prefix(letter)) {
      at += 2;
      base = ofBase;
      break;
    }
  if (base == 0)
    base = 10;
  if (at == text->size())
    return std::nullopt;
  Int value = 0;
  for (; at < text->size(); ++at) {
    char c = (*text)[at];
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'z' ? c - 'a' + 10
                : c >= 'A' && c <= 'Z' ? c - 'A' + 10
                                       : 99;
    if (digit >= base)
      return std::nullopt;
    value = value * base + digit;
    if (value > Int{1} << 100)
      raise("integer too large (over 100 bits)");
  }
  return negative ? -value : value;
}

/// float(text); nothing if it is not a number.
std::optional<double> parseReal(std::string_view bytes) {
  std::optional<std::string> text = numberText(bytes);
  // strtod also reads hexadecimal and "nan(…)", which Python does not.
  if (!text || text->empty() ||
      text->find_first_of("xXpP()") != std::string::npos)
    return std::nullopt;
  char *end = nullptr;
  double value = std::strtod(text->c_str(), &end);
  if (end != text->c_str() + text->size())
    return std::nullopt;
  return value;
}

std::optional<Int> truncateReal(double value) {
  if (!std::isfinite(value))
    return std::nullopt;
  if (std::fabs(value) >= 1e30)
    raise("integer too large (over 100 bits)");
  return static_cast<Int>(value);
}

Value filterInt(Interpreter &in, const Value &self, Args &args) {
  Bound bound("int", args, {"default", "base"});
  Value fallback = bound[0] ? *bound[0] : Value(0);
  Int base = bound.integer(1, 10);
  requireDefined(self);
  Int value;
  if (self.asInt(value))
    return Value(value);
  std::optional<Int> result;
  if (const double *real = self.real()) {
    result = truncateReal(*real);
  } else if (self.isString()) {
    in.budget().step(self.text().size() / 8);
    if (base == 0 || (base >= 2 && base <= 36))
      result = parseInt(self.text().bytes(), base);
    if (!result)
      if (std::optional<double> real = parseReal(self.text().bytes()))
        result = truncateReal(*real);
  }
  return result ? Value(*result) : fallback;
}

Value filterFloat(Interpreter &in, const Value &self, Args &args) {
  Bound bound("float", args, {"default"});
  requireDefined(self);
  double value;
  if (self.asReal(value))
    return Value(value);
  if (self.isString()) {
    in.budget().step(self.text().size() / 8);
    if (std::optional<double> real = parseReal(self.text().bytes()))
      return Value(*real);
  }
  return bound[0] ? *bound[0] : Value(0.0);
}

Value filterAbs(Interpreter &in, const Value &self, Args &args) {
  Bound bound("abs", args, {});
  requireDefined(self);
  Int i;
  if (self.asInt(i))
    return Value(i < 0 ? -i : i);
  if (const double *real = self.real())
    return Value(std::fabs(*real));
  raise("bad operand type for abs(): '{}'", typeName(self));
}

/// round(value, digits) of Python: exact, ties to even.
double roundReal(double value, Int digits) {
  if (!std::isfinite(value) || digits > 300)
    return value;
  if (digits < -308)
    return std::copysign(0.0, value);
  if (digits >= 0)
    return std::strtod(
        fmt::format("{:.{}f}", value, static_cast<int>(digits)).c_str(),
        nullptr);
  double scale = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / scale) * scale;
}

Int roundInt(Int value, Int digits) {
  if (digits >= 0)
    return value;
  if (digits < -30)
    return 0;
  Int scale = 1;
  for (; digits < 0; ++digits)
    scale *= 10;
  Int rest = value % scale;
  if (rest < 0)
    rest += scale;
  Int down = value - rest;
  bool odd = (down / scale) % 2 != 0;
  return rest * 2 > scale || (rest * 2 == scale && odd) ? down + scale : down;
}

Value filterRound(Interpreter &in, const Value &self, Args &args) {
  Bound bound("round", args, {"precision", "method"});
  requireDefined(self);
  Int digits = bound.integer(0, 0);
  std::string method = "common";
  if (bound[1])
    method = toStr(in.budget(), *bound[1]).text().bytes();
  if (method != "common" && method != "ceil" && method != "floor")
    raise("method must be common, ceil or floor");
  Int i;
  double real;
  if (method == "common" && self.asInt(i))
    return Value(roundInt(i, digits));
  if (!self.asReal(real))
    raise("type {} doesn't define __round__ method", typeName(self));
  if (method == "common")
    return Value(roundReal(real, digits));
  double scale = std::pow(10.0, static_cast<double>(digits));
  double scaled = real * scale;
  if (!std::isfinite(scaled))
    raise("cannot convert float to integer");
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) /
               scale);
}

constexpr Builtin table[] = {
    {"int", filterInt},
    {"float", filterFloat},
    {"abs", filterAbs},
    {"round", filterRound},
};

} // namespace

BuiltinTable numberFilters() { return {table, std::size(table)}; }

} // namespace lathe::runtime::jinja

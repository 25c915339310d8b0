// str methods that change letters, fill, join, or ask what a string is made of.
#include "runtime/text/jinja/Interpreter.h"
#include "runtime/text/jinja/TextOps.h"

namespace lathe::runtime::jinja {

namespace {

Value strUpper(Interpreter &in, const Value &self, Args &args) {
  Bound bound("upper", args, {});
  return changeCase(in.budget(), self.text(), Case::Upper);
}

Value strLower(Interpreter &in, const Value &self, Args &args) {
  Bound bound("lower", args, {});
  return changeCase(in.budget(), self.text(), Case::Lower);
}

Value strCapitalize(Interpreter &in, const Value &self, Args &args) {
  Bound bound("capitalize", args, {});
  return capitalize(in.budget(), self.text());
}

Value strTitle(Interpreter &in, const Value &self, Args &args) {
  Bound bound("title", args, {});
  return titleCase(in.budget(), self.text());
}

Value strSwapcase(Interpreter &in, const Value &self, Args &args) {
  Bound bound("swapcase", args, {});
  const std::string &bytes = self.text().bytes();
  return mapChars(in.budget(), self.text(),
                  [&](std::string &out, char32_t c, size_t at) {
                    if (isUpper(c))
                      appendLower(out, bytes, c, at);
                    else if (isLower(c))
                      appendCased(out, c, Case::Upper);
                    else
                      appendUtf8(out, c);
                  });
}

Value strReplace(Interpreter &in, const Value &self, Args &args) {
  Bound bound("replace", args, {"old", "new", "count"}, 2);
  if (!args.named.empty())
    raise("str.replace() takes no keyword arguments");
  for (size_t i = 0; i < 2; ++i)
    if (!bound[i]->isString())
      raise("replace() argument {} must be str, not {}", i + 1,
            typeName(*bound[i]));
  return replaceText(in.budget(), self.text(), bound[0]->text(),
                     bound[1]->text(), bound.integer(2, -1));
}

Value strJoin(Interpreter &in, const Value &self, Args &args) {
  Bound bound("join", args, {"iterable"}, 1);
  return joinText(in.budget(), self.text(), in.iterate(*bound[0]), false);
}

Value strFormat(Interpreter &in, const Value &self, Args &args) {
  return formatBraces(in, self.text(), args);
}

/// Spreads the fill of ljust, rjust and center.
Value pad(Interpreter &in, const Value &self, Args &args, bool left,
          bool right) {
  Bound bound("ljust", args, {"width", "fillchar"}, 1);
  Value fill = bound[1] ? *bound[1] : in.string(" ");
  if (!fill.isString() || countChars(fill.text().bytes()) != 1)
    raise("The fill character must be exactly one character long");
  Int width = bound.integer(0, 0);
  in.budget().touch(self.text().size());
  Int missing = width - static_cast<Int>(countChars(self.text().bytes()));
  if (missing <= 0)
    return self;
  // CPython's center puts the odd one left only if the width is odd.
  Int before = !left    ? 0
               : !right ? missing
                        : missing / 2 + (missing & width & 1);
  Builder out(in.budget());
  auto add = [&](Int count) {
    for (; count > 0; --count) {
      in.budget().step();
      out.add(fill.text());
    }
  };
  add(before);
  out.add(self.text());
  add(missing - before);
  return out.take();
}

Value strLjust(Interpreter &in, const Value &self, Args &args) {
  return pad(in, self, args, false, true);
}
Value strRjust(Interpreter &in, const Value &self, Args &args) {
  return pad(in, self, args, true, false);
}
Value strCenter(Interpreter &in, const Value &self, Args &args) {
  return pad(in, self, args, true, true);
}

Value strZfill(Interpreter &in, const Value &self, Args &args) {
  Bound bound("zfill", args, {"width"}, 1);
  const Text &text = self.text();
  in.budget().touch(text.size());
  Int missing =
      bound.integer(0, 0) - static_cast<Int>(countChars(text.bytes()));
  size_t sign =
      !text.empty() && (text.bytes()[0] == '+' || text.bytes()[0] == '-');
  Builder out(in.budget());
  out.add(text, 0, sign);
  for (; missing > 0; --missing) {
    in.budget().step();
    out.add("0");
  }
  out.add(text, sign, text.size());
  return out.take();
}

/// True if the string is not empty and all its characters have the property.
template <bool (*Predicate)(char32_t)>
Value all(Interpreter &in, const Value &self, Args &args) {
  Bound bound("predicate", args, {});
  const std::string &bytes = self.text().bytes();
  in.budget().step(bytes.size() / 8);
  for (size_t at = 0; at < bytes.size(); at += charWidth(bytes, at))
    if (!Predicate(decodeAt(bytes, at)))
      return Value(false);
  return Value(!bytes.empty());
}

template <bool Upper>
Value strIsCase(Interpreter &in, const Value &self, Args &args) {
  return Value(in.applyTest(Upper ? "upper" : "lower", self, args));
}

constexpr Builtin table[] = {
    {"upper", strUpper},
    {"lower", strLower},
    {"capitalize", strCapitalize},
    {"title", strTitle},
    {"swapcase", strSwapcase},
    {"replace", strReplace},
    {"join", strJoin},
    {"format", strFormat},
    {"ljust", strLjust},
    {"rjust", strRjust},
    {"center", strCenter},
    {"zfill", strZfill},
    {"isalpha", all<isAlpha>},
    {"isalnum", all<isAlnum>},
    {"isdigit", all<isDigit>},
    {"isdecimal", all<isDecimal>},
    {"isnumeric", all<isNumeric>},
    {"isspace", all<isSpace>},
    {"isupper", strIsCase<true>},
    {"islower", strIsCase<false>},
};

} // namespace

BuiltinTable stringShapeMethods() { return {table, std::size(table)}; }

} // namespace lathe::runtime::jinja

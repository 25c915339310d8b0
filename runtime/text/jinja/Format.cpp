// Python's two ways to format: `'%s' % x` and `'{}'.format(x)`.
#include "runtime/text/jinja/Interpreter.h"
#include "runtime/text/jinja/Unicode.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace lathe::runtime::jinja {

namespace {

/// Widths and precisions beyond this are refused: a text is for a prompt.
constexpr Int maxWidth = 10'000;

/// A conversion, from either syntax.
struct Spec {
  char fill = ' ';
  char align = 0; ///< '<', '>', '^', '=' or 0.
  char sign = 0;  ///< '+', ' ' or 0.
  bool alternate = false, grouped = false;
  Int width = 0;
  Int precision = -1;
  char type = 0;
};

bool isDigitAt(std::string_view text, size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

Int readNumber(std::string_view text, size_t &at) {
  Int value = 0;
  for (; isDigitAt(text, at); ++at) {
    value = value * 10 + (text[at] - '0');
    if (value > maxWidth)
      raise("a width or precision over {} is not supported", maxWidth);
  }
  return value;
}

void addPadded(Builder &out, const Text &body, const Spec &spec,
               char defaultAlign) {
  Int missing = spec.width - static_cast<Int>(countChars(body.bytes()));
  char align = spec.align ? spec.align : defaultAlign;
  std::string fill(static_cast<size_t>(std::max<Int>(missing, 0)), spec.fill);
  size_t before = align == '<'   ? 0
                  : align == '^' ? fill.size() / 2
                                 : fill.size();
  size_t sign = 0;
  if (align == '=' && !body.empty() &&
      std::string_view("+- ").find(body.bytes()[0]) != std::string_view::npos)
    sign = 1;
  out.add(body, 0, sign);
  out.add(std::string_view(fill).substr(0, before));
  out.add(body, sign, body.size());
  out.add(std::string_view(fill).substr(before));
}

/// Puts commas between groups of three in the whole part of `digits`.
std::string group(const std::string &digits) {
  size_t whole = digits.find_first_not_of("0123456789");
  whole = std::min(whole, digits.size());
  std::string out;
  for (size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % 3 == 0)
      out.push_back(',');
    out.push_back(digits[i]);
  }
  return out + digits.substr(whole);
}

void addNumber(Builder &out, std::string digits, bool negative,
               const Spec &spec) {
  if (spec.grouped)
    digits = group(digits);
  if (negative)
    digits.insert(0, "-");
  else if (spec.sign)
    digits.insert(0, 1, spec.sign);
  addPadded(out, Text(std::move(digits), true), spec, '>');
}

void addInteger(Builder &out, Int value, const Spec &spec) {
  bool negative = value < 0;
  Int size = negative ? -value : value;
  std::string digits;
  switch (spec.type) {
  case 'x':
    digits = (spec.alternate ? "0x" : "") + fmt::format("{:x}", size);
    break;
  case 'X':
    digits = (spec.alternate ? "0X" : "") + fmt::format("{:X}", size);
    break;
  case 'o':
    digits = (spec.alternate ? "0o" : "") + fmt::format("{:o}", size);
    break;
  case 'b':
    digits = (spec.alternate ? "0b" : "") + fmt::format("{:b}", size);
    break;
  default:
    digits = fmt::format("{}", size);
  }
  addNumber(out, std::move(digits), negative, spec);
}

void addReal(Builder &out, double value, const Spec &spec) {
  bool negative = std::signbit(value) && !std::isnan(value);
  double size = std::fabs(value);
  int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  std::string digits;
  if (!std::isfinite(value))
    digits = std::isnan(value) ? "nan" : "inf";
  else if (spec.type == 'e' || spec.type == 'E')
    digits = spec.type == 'e' ? fmt::format("{:.{}e}", size, precision)
                              : fmt::format("{:.{}E}", size, precision);
  else if (spec.type == 'g')
    digits = fmt::format("{:.{}g}", size, precision);
  else if (spec.type == '%')
    digits = fmt::format("{:.{}f}%", size * 100, precision);
  else if (spec.type == 0 && spec.precision < 0)
    digits = reprReal(size);
  else if (spec.type == 0)
    digits = fmt::format("{:.{}g}", size, precision);
  else
    digits = fmt::format("{:.{}f}", size, precision);
  addNumber(out, std::move(digits), negative, spec);
}

/// `value` cut to the precision and padded.
void addText(Builder &out, const Text &text, const Spec &spec,
             char defaultAlign) {
  size_t end = text.size();
  if (spec.precision >= 0) {
    end = 0;
    for (Int i = 0; i < spec.precision && end < text.size(); ++i)
      end += charWidth(text.bytes(), end);
  }
  addPadded(out, text.slice(0, end), spec, defaultAlign);
}

void addPercent(Builder &out, const Value &value, const Spec &spec) {
  Int i;
  double d;
  switch (spec.type) {
  case 's':
    return addText(out, toStr(out.budget(), value).text(), spec, '>');
  case 'r': {
    Builder repr(out.budget());
    appendRepr(repr, value);
    return addText(out, repr.take().text(), spec, '>');
  }
  case 'd':
  case 'i':
  case 'u':
    requireDefined(value);
    if (value.asInt(i))
      return addInteger(out, i, spec);
    if (value.asReal(d) && std::fabs(d) < 1e30)
      return addInteger(out, static_cast<Int>(d), spec);
    raise("%d format: a real number is required, not {}", typeName(value));
  case 'x':
  case 'X':
  case 'o':
    requireDefined(value);
    if (!value.asInt(i))
      raise("%x format: an integer is required, not {}", typeName(value));
    return addInteger(out, i, spec);
  case 'f':
  case 'F':
  case 'e':
  case 'E':
  case 'g':
    requireDefined(value);
    if (!value.asReal(d))
      raise("must be real number, not {}", typeName(value));
    return addReal(out, d, spec);
  default:
    raise("unsupported format character '{}'", spec.type);
  }
}

} // namespace

Value formatPercent(Meter &meter, const Text &format, const Value &value) {
  const std::string &bytes = format.bytes();
  const SeqBox *tuple = value.seq();
  if (tuple && !tuple->isTuple())
    tuple = nullptr;
  size_t used = 0, available = tuple ? tuple->items.size() : 1;
  bool named = false;
  Builder out(meter);
  for (size_t at = 0; at < bytes.size();) {
    meter.step();
    size_t percent = std::min(bytes.find('%', at), bytes.size());
    out.add(format, at, percent);
    if (percent == bytes.size())
      break;
    at = percent + 1;
    Value item;
    bool hasItem = false;
    if (at < bytes.size() && bytes[at] == '(') {
      size_t close = bytes.find(')', at);
      if (close == std::string::npos)
        raise("incomplete format key");
      if (!value.isDict())
        raise("format requires a mapping");
      std::string key = bytes.substr(at + 1, close - at - 1);
      const Value *found = value.dict()->find(meter, key);
      if (!found)
        raise("no key '{}' to format", std::string_view(key).substr(0, 80));
      item = *found;
      hasItem = named = true;
      at = close + 1;
    }
    auto take = [&]() -> Value {
      if (used >= available)
        raise("not enough arguments for format string");
      ++used;
      return tuple ? tuple->items[used - 1] : value;
    };
    Spec spec;
    for (; at < bytes.size(); ++at) {
      char c = bytes[at];
      if (c == '-') {
        spec.align = '<';
      } else if (c == '0') {
        spec.fill = '0';
        if (!spec.align)
          spec.align = '=';
      } else if (c == '+' || (c == ' ' && !spec.sign)) {
        spec.sign = c;
      } else if (c == '#') {
        spec.alternate = true;
      } else {
        break;
      }
    }
    if (spec.align == '<')
      spec.fill = ' ';
    spec.width = readNumber(bytes, at);
    if (at < bytes.size() && bytes[at] == '.')
      spec.precision = readNumber(bytes, ++at);
    if (at >= bytes.size())
      raise("incomplete format");
    spec.type = bytes[at++];
    if (spec.type == '%') {
      out.add("%");
      continue;
    }
    // Zeros fill numbers only.
    if ((spec.type == 's' || spec.type == 'r') && spec.fill == '0') {
      spec.fill = ' ';
      spec.align = spec.align == '<' ? '<' : 0;
    }
    addPercent(out, hasItem ? item : take(), spec);
  }
  // Python takes everything with subscripts for a mapping here.
  bool mapping = value.isDict() || value.isUndefined() ||
                 (value.isSeq() && !tuple && !value.seq()->isView());
  if (used < available && !named && !mapping)
    raise("not all arguments converted during string formatting");
  return out.take();
}

namespace {

/// The part of a replacement field behind the colon.
Spec parseSpec(std::string_view text) {
  Spec spec;
  size_t at = 0;
  auto isAlign = [](char c) {
    return c == '<' || c == '>' || c == '^' || c == '=';
  };
  if (text.size() > 1 && isAlign(text[1])) {
    spec.fill = text[0];
    spec.align = text[1];
    at = 2;
  } else if (!text.empty() && isAlign(text[0])) {
    spec.align = text[at++];
  }
  if (at < text.size() &&
      (text[at] == '+' || text[at] == ' ' || text[at] == '-')) {
    spec.sign = text[at] == '-' ? '\0' : text[at];
    ++at;
  }
  if (at < text.size() && text[at] == '#') {
    spec.alternate = true;
    ++at;
  }
  if (at < text.size() && text[at] == '0') {
    if (!spec.align) {
      spec.fill = '0';
      spec.align = '=';
    }
    ++at;
  }
  spec.width = readNumber(text, at);
  if (at < text.size() && text[at] == ',') {
    spec.grouped = true;
    ++at;
  }
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (!isDigitAt(text, at))
      raise("Format specifier missing precision");
    spec.precision = readNumber(text, at);
  }
  if (at < text.size())
    spec.type = text[at++];
  if (at != text.size())
    raise("Invalid format specifier");
  return spec;
}

void addField(Builder &out, const Value &value, std::string_view text) {
  if (text.empty())
    return appendStr(out, value);
  Spec spec = parseSpec(text);
  Int i;
  double d;
  bool forReal =
      std::string_view("feEgF%").find(spec.type) != std::string_view::npos &&
      spec.type != 0;
  if (value.isString()) {
    if (spec.type != 0 && spec.type != 's')
      raise("Unknown format code '{}' for object of type 'str'", spec.type);
    return addText(out, value.text(), spec, '<');
  }
  if (forReal ? value.asReal(d) : value.real() && value.asReal(d)) {
    if (!forReal && spec.type != 0)
      raise("Unknown format code '{}' for object of type 'float'", spec.type);
    return addReal(out, d, spec);
  }
  if (value.asInt(i)) {
    if (std::string_view("\0dxXobn", 7).find(spec.type) ==
            std::string_view::npos ||
        spec.precision >= 0)
      raise("Unknown format code '{}' for object of type 'int'", spec.type);
    return addInteger(out, i, spec);
  }
  raise("unsupported format string passed to {}.__format__", typeName(value));
}

} // namespace

Value formatBraces(Interpreter &in, const Text &format, const Args &args) {
  const std::string &bytes = format.bytes();
  Builder out(in.budget());
  size_t automatic = 0;
  bool numbered = false;
  for (size_t at = 0; at < bytes.size();) {
    in.budget().step();
    size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.add(format, at, brace);
    if (brace == bytes.size())
      break;
    bool doubled = brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace];
    if (doubled) {
      out.add(format, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    if (bytes[brace] == '}')
      raise("Single '}}' encountered in format string");
    size_t close = bytes.find('}', brace);
    if (close == std::string::npos)
      raise("expected '}}' before end of string");
    std::string_view field =
        std::string_view(bytes).substr(brace + 1, close - brace - 1);
    if (field.find('{') != std::string_view::npos)
      raise("nested replacement fields are not supported");
    at = close + 1;
    std::string_view spec;
    if (size_t colon = field.find(':'); colon != std::string_view::npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    std::string_view conversion;
    if (size_t bang = field.find('!'); bang != std::string_view::npos) {
      conversion = field.substr(bang + 1);
      field = field.substr(0, bang);
    }
    size_t end = std::min(field.find_first_of(".["), field.size());
    std::string_view name = field.substr(0, end);
    Value value;
    bool isNumber =
        name.find_first_not_of("0123456789") == std::string_view::npos;
    if (isNumber) {
      if (name.empty() ? numbered : automatic > 0)
        raise("cannot mix automatic and manual field numbering");
      numbered |= !name.empty();
      size_t zero = 0;
      Int index =
          name.empty() ? static_cast<Int>(automatic++) : readNumber(name, zero);
      if (index >= static_cast<Int>(args.positional.size()))
        raise("Replacement index {} out of range for positional args tuple",
              index);
      value = args.positional[static_cast<size_t>(index)];
    } else {
      auto it =
          std::find_if(args.named.begin(), args.named.end(),
                       [&](const auto &arg) { return arg.first == name; });
      if (it == args.named.end())
        raise("no argument '{}' to format", name.substr(0, 80));
      value = it->second;
    }
    for (field.remove_prefix(end); !field.empty();) {
      in.budget().step();
      if (field[0] == '.') {
        size_t stop = std::min(field.find_first_of(".[", 1), field.size());
        value = in.attribute(value,
                             in.string(std::string(field.substr(1, stop - 1))));
        field.remove_prefix(stop);
      } else {
        size_t stop = field.find(']');
        if (field[0] != '[' || stop == std::string_view::npos)
          raise("Missing ']' in format string");
        std::string key(field.substr(1, stop - 1));
        bool index = !key.empty() && key.size() < 18 &&
                     key.find_first_not_of("0123456789") == std::string::npos;
        value = in.item(value, index ? Value(static_cast<Int>(std::stoll(key)))
                                     : in.string(std::move(key)));
        field.remove_prefix(stop + 1);
      }
    }
    if (conversion == "r") {
      Builder repr(in.budget());
      appendRepr(repr, value);
      value = repr.take();
    } else if (conversion == "s") {
      value = toStr(in.budget(), value);
    } else if (!conversion.empty()) {
      raise("Unknown conversion specifier");
    }
    addField(out, value, spec);
  }
  return out.take();
}

} // namespace lathe::runtime::jinja

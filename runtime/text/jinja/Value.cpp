#include "runtime/text/jinja/Value.h"

#include "runtime/text/jinja/Unicode.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace lathe::runtime::jinja {

namespace {

size_t depthOf(const Value &value) {
  if (const SeqBox *seq = value.seq())
    return seq->depth;
  if (const DictBox *dict = value.dict())
    return dict->depth;
  return 0;
}

size_t depthAround(size_t inner) {
  if (inner >= maxValueDepth)
    throw Failure{ErrorKind::Exhausted,
                  fmt::format("lists and dicts nest deeper than {} levels",
                              maxValueDepth)};
  return inner + 1;
}

/// Names in messages come from requests; keep them short.
std::string_view shorten(std::string_view text) { return text.substr(0, 80); }

/// A number comparison that keeps 64-bit integers exact.
long double wide(const Value &number) {
  Int i;
  if (number.asInt(i))
    return static_cast<long double>(i);
  return *number.real();
}

} // namespace

bool Value::asInt(Int &out) const {
  if (const bool *b = boolean())
    out = *b;
  else if (const Int *i = integer())
    out = *i;
  else
    return false;
  return true;
}

bool Value::asReal(double &out) const {
  Int i;
  if (const double *d = real())
    out = *d;
  else if (asInt(i))
    out = static_cast<double>(i);
  else
    return false;
  return true;
}

const Value *DictBox::find(Meter &meter, const Value &key) const {
  if (key.isString())
    return find(meter, std::string_view(key.text().bytes()));
  meter.step(entries.size() / 8);
  for (const auto &[k, v] : entries)
    if (equals(meter, k, key))
      return &v;
  return nullptr;
}

const Value *DictBox::find(Meter &meter, std::string_view key) const {
  meter.step(entries.size() / 8);
  for (const auto &[k, v] : entries)
    if (k.isString() && k.text().bytes() == key)
      return &v;
  return nullptr;
}

const Value *Namespace::find(std::string_view name) const {
  for (const auto &[k, v] : fields)
    if (k == name)
      return &v;
  return nullptr;
}

Value Builder::take() {
  meter.release(charged);
  charged = 0;
  return makeString(&meter, std::move(text));
}

Value makeString(Meter *meter, Text text) {
  auto box = std::make_shared<StringBox>();
  box->charge(meter, sizeof(StringBox) + text.footprint());
  box->text = std::move(text);
  return Value(std::shared_ptr<const StringBox>(std::move(box)));
}

Value makeUndefined(Meter *meter, std::string message) {
  auto box = std::make_shared<UndefinedBox>();
  box->charge(meter, sizeof(UndefinedBox) + message.size());
  box->message = std::move(message);
  return Value(std::shared_ptr<const UndefinedBox>(std::move(box)));
}

Value makeSeq(Meter &meter, SeqKind kind, Values items) {
  auto box = std::make_shared<SeqBox>();
  meter.step(items.size() / 8);
  size_t inner = 0;
  for (const Value &item : items)
    inner = std::max(inner, depthOf(item));
  box->depth = depthAround(inner);
  box->charge(&meter, sizeof(SeqBox) + items.size() * sizeof(Value));
  box->kind = kind;
  box->items = std::move(items);
  return Value(std::shared_ptr<const SeqBox>(std::move(box)));
}

Value makeRange(Meter &meter, Int start, Int stop, Int step) {
  constexpr Int farthest = Int{1} << 100; // So that sums below fit.
  for (Int bound : {start, stop, step})
    if (bound > farthest || bound < -farthest)
      raise("integer too large (over 100 bits)");
  // The sandbox of jinja2 has the same bound.
  constexpr Int maxRange = 100'000;
  Int count = 0;
  if (step > 0 && start < stop)
    count = (stop - start - 1) / step + 1;
  else if (step < 0 && start > stop)
    count = (start - stop - 1) / -step + 1;
  if (count > maxRange)
    raise("Range too big. The sandbox blocks ranges larger than 100000.");
  meter.step(static_cast<uint64_t>(count) / 8);
  auto box = std::make_shared<SeqBox>();
  box->charge(&meter,
              sizeof(SeqBox) + static_cast<size_t>(count) * sizeof(Value));
  box->kind = SeqKind::Range;
  box->start = start;
  box->stop = stop;
  box->step = step;
  box->items.reserve(static_cast<size_t>(count));
  for (Int i = 0; i < count; ++i)
    box->items.emplace_back(start + i * step);
  return Value(std::shared_ptr<const SeqBox>(std::move(box)));
}

Value makeDict(Meter &meter, std::vector<std::pair<Value, Value>> entries) {
  auto box = std::make_shared<DictBox>();
  meter.step(entries.size() / 8);
  size_t inner = 0;
  for (const auto &[key, value] : entries)
    inner = std::max({inner, depthOf(key), depthOf(value)});
  box->depth = depthAround(inner);
  box->charge(&meter, sizeof(DictBox) + entries.size() * 2 * sizeof(Value));
  box->entries = std::move(entries);
  return Value(std::shared_ptr<const DictBox>(std::move(box)));
}

void insertEntry(Meter &meter, std::vector<std::pair<Value, Value>> &entries,
                 Value key, Value value) {
  if (!isHashable(key))
    raise("unhashable type: '{}'", typeName(key));
  meter.step(1 + entries.size() / 8);
  for (auto &[k, v] : entries)
    if (equals(meter, k, key)) {
      v = std::move(value);
      return;
    }
  entries.emplace_back(std::move(key), std::move(value));
}

std::string_view typeName(const Value &value) {
  if (value.isNone())
    return "NoneType";
  if (value.boolean())
    return "bool";
  if (value.integer())
    return "int";
  if (value.real())
    return "float";
  if (value.isString())
    return "str";
  if (value.isUndefined())
    return "Undefined";
  if (value.isDict())
    return "dict";
  if (const SeqBox *seq = value.seq()) {
    static constexpr std::string_view names[] = {
        "list",       "tuple",     "tuple",      "range",
        "dict_items", "dict_keys", "dict_values"};
    return names[static_cast<int>(seq->kind)];
  }
  static constexpr std::string_view names[] = {
      "Namespace", "Macro",       "method", "function",
      "generator", "LoopContext", "Joiner", "Cycler"};
  return names[static_cast<int>(value.object()->kind)];
}

bool truthy(const Value &value) {
  if (const bool *b = value.boolean())
    return *b;
  if (const Int *i = value.integer())
    return *i != 0;
  if (const double *d = value.real())
    return *d != 0;
  if (value.isString())
    return !value.text().empty();
  if (const SeqBox *seq = value.seq())
    return !seq->items.empty();
  if (const DictBox *dict = value.dict())
    return !dict->entries.empty();
  return value.object() != nullptr;
}

bool isHashable(const Value &value) {
  const SeqBox *seq = value.seq();
  if (!seq)
    return !value.isDict();
  if (seq->isTuple())
    return std::all_of(seq->items.begin(), seq->items.end(), isHashable);
  return seq->kind == SeqKind::Range;
}

bool equals(Meter &meter, const Value &a, const Value &b) {
  meter.step();
  if (a.isNumber() && b.isNumber())
    return wide(a) == wide(b);
  if (a.isString() && b.isString()) {
    const std::string &x = a.text().bytes(), &y = b.text().bytes();
    if (x.size() != y.size())
      return false;
    meter.touch(x.size());
    return x == y;
  }
  if (a.isNone() || b.isNone())
    return a.isNone() && b.isNone();
  if (a.isUndefined() || b.isUndefined())
    return a.isUndefined() && b.isUndefined();
  if (a.object() || b.object())
    return a.object() == b.object();
  if (a.isDict() && b.isDict()) {
    if (a.dict()->entries.size() != b.dict()->entries.size())
      return false;
    for (const auto &[key, value] : a.dict()->entries) {
      const Value *other = b.dict()->find(meter, key);
      if (!other || !equals(meter, value, *other))
        return false;
    }
    return true;
  }
  if (!a.isSeq() || !b.isSeq())
    return false;
  const SeqBox &x = *a.seq(), &y = *b.seq();
  if (x.isTuple() != y.isTuple() || (!x.isTuple() && x.kind != y.kind) ||
      x.items.size() != y.items.size())
    return false;
  for (size_t i = 0; i < x.items.size(); ++i)
    if (!equals(meter, x.items[i], y.items[i]))
      return false;
  return true;
}

bool lessThan(Meter &meter, const Value &a, const Value &b) {
  meter.step();
  requireDefined(a);
  requireDefined(b);
  if (a.isNumber() && b.isNumber())
    return wide(a) < wide(b);
  if (a.isString() && b.isString()) {
    meter.touch(std::min(a.text().size(), b.text().size()));
    return a.text().bytes() < b.text().bytes();
  }
  if (a.isSeq() && b.isSeq()) {
    const SeqBox &x = *a.seq(), &y = *b.seq();
    bool lists = x.kind == SeqKind::List && y.kind == SeqKind::List;
    if (lists || (x.isTuple() && y.isTuple())) {
      size_t common = std::min(x.items.size(), y.items.size());
      for (size_t i = 0; i < common; ++i)
        if (!equals(meter, x.items[i], y.items[i]))
          return lessThan(meter, x.items[i], y.items[i]);
      return x.items.size() < y.items.size();
    }
  }
  raise("'<' not supported between instances of '{}' and '{}'", typeName(a),
        typeName(b));
}

std::string reprReal(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                           std::chars_format::scientific)
                 .ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  std::string sign = text.front() == '-' ? "-" : "";
  text.remove_prefix(sign.size());
  size_t e = text.find('e');
  int exponent = std::stoi(std::string(text.substr(e + 1)));
  std::string digits(1, text[0]);
  if (e > 1)
    digits += text.substr(2, e - 2);
  auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    std::string mantissa = digits.substr(0, 1);
    if (count > 1)
      mantissa += "." + digits.substr(1);
    return fmt::format("{}{}e{}{:02}", sign, mantissa, exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  if (exponent < 0)
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') +
           digits;
  if (count <= exponent + 1)
    return sign + digits +
           std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  auto point = static_cast<size_t>(exponent + 1);
  return sign + digits.substr(0, point) + "." + digits.substr(point);
}

namespace {

void reprString(Builder &out, const Text &text) {
  const std::string &bytes = text.bytes();
  bool doubled = bytes.find('\'') != std::string::npos &&
                 bytes.find('"') == std::string::npos;
  char quote = doubled ? '"' : '\'';
  out.add(std::string_view(&quote, 1));
  size_t plain = 0;
  for (size_t at = 0; at < bytes.size();) {
    size_t width = charWidth(bytes, at);
    char32_t c = decodeAt(bytes, at);
    std::string escape;
    if (c == '\\' || c == static_cast<char32_t>(quote))
      escape = {'\\', static_cast<char>(c)};
    else if (c == '\n')
      escape = "\\n";
    else if (c == '\r')
      escape = "\\r";
    else if (c == '\t')
      escape = "\\t";
    else if (!isPrintable(c))
      escape = c < 0x100     ? fmt::format("\\x{:02x}", uint32_t(c))
               : c < 0x10000 ? fmt::format("\\u{:04x}", uint32_t(c))
                             : fmt::format("\\U{:08x}", uint32_t(c));
    if (!escape.empty()) {
      out.add(text, plain, at);
      out.add(escape, text.trustedAt(at));
      plain = at + width;
    }
    at += width;
  }
  out.add(text, plain, bytes.size());
  out.add(std::string_view(&quote, 1));
}

void appendRepr(Builder &out, const Value &value, size_t depth) {
  out.budget().step();
  if (depth > maxValueDepth)
    raise("maximum recursion depth exceeded while getting the repr");
  auto list = [&](std::string_view open, const Values &items,
                  std::string_view close) {
    out.add(open);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0)
        out.add(", ");
      appendRepr(out, items[i], depth + 1);
    }
    out.add(close);
  };
  if (value.isString())
    return reprString(out, value.text());
  if (value.isUndefined())
    return out.add("Undefined");
  if (const SeqBox *seq = value.seq()) {
    switch (seq->kind) {
    case SeqKind::List:
      return list("[", seq->items, "]");
    case SeqKind::Tuple:
    case SeqKind::Group:
      return list("(", seq->items, seq->items.size() == 1 ? ",)" : ")");
    case SeqKind::Items:
      return list("dict_items([", seq->items, "])");
    case SeqKind::Keys:
      return list("dict_keys([", seq->items, "])");
    case SeqKind::DictValues:
      return list("dict_values([", seq->items, "])");
    case SeqKind::Range:
      break;
    }
    out.add(fmt::format("range({}, {}", seq->start, seq->stop));
    return out.add(seq->step == 1 ? ")" : fmt::format(", {})", seq->step));
  }
  if (const DictBox *dict = value.dict()) {
    out.add("{");
    std::string_view separator;
    for (const auto &[key, item] : dict->entries) {
      out.add(separator);
      appendRepr(out, key, depth + 1);
      out.add(": ");
      appendRepr(out, item, depth + 1);
      separator = ", ";
    }
    return out.add("}");
  }
  if (const Object *object = value.object()) {
    if (object->kind != Object::Kind::Namespace)
      return out.add(fmt::format("<{} object>", typeName(value)));
    out.add("<Namespace {");
    std::string_view separator;
    for (const auto &[name, item] :
         static_cast<const Namespace *>(object)->fields) {
      out.add(separator);
      reprString(out, Text(name, true));
      out.add(": ");
      appendRepr(out, item, depth + 1);
      separator = ", ";
    }
    return out.add("}>");
  }
  appendStr(out, value);
}

} // namespace

void appendRepr(Builder &out, const Value &value) { appendRepr(out, value, 0); }

void appendStr(Builder &out, const Value &value) {
  if (value.isString())
    out.add(value.text());
  else if (value.isNone())
    out.add("None");
  else if (const bool *b = value.boolean())
    out.add(*b ? "True" : "False");
  else if (const Int *i = value.integer())
    out.add(fmt::format("{}", *i));
  else if (const double *d = value.real())
    out.add(reprReal(*d));
  else if (!value.isUndefined())
    appendRepr(out, value);
}

Value toStr(Meter &meter, const Value &value) {
  if (value.isString())
    return value;
  Builder out(meter);
  appendStr(out, value);
  return out.take();
}

void requireDefined(const Value &value) {
  if (const UndefinedBox *undefined = value.undefined())
    raise("{}", shorten(undefined->message));
}

} // namespace lathe::runtime::jinja

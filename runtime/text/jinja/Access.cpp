// Attributes, items, slices, iteration and calls: how values are taken apart.
#include "runtime/text/jinja/Interpreter.h"

#include "runtime/text/jinja/Unicode.h"

#include <algorithm>

namespace lathe::runtime::jinja {

namespace {

/// Methods that change a list or dict; the immutable sandbox hides them.
bool isMutator(const Value &value, std::string_view name) {
  static constexpr std::string_view ofList[] = {"append",  "clear", "extend",
                                                "insert",  "pop",   "remove",
                                                "reverse", "sort"};
  static constexpr std::string_view ofDict[] = {"clear", "pop", "popitem",
                                                "setdefault", "update"};
  auto has = [&](const auto &names) {
    return std::find(std::begin(names), std::end(names), name) !=
           std::end(names);
  };
  if (const SeqBox *seq = value.seq())
    return seq->kind == SeqKind::List && has(ofList);
  return value.isDict() && has(ofDict);
}

std::string_view shorten(const Value &name) {
  return std::string_view(name.text().bytes()).substr(0, 80);
}

} // namespace

Value Interpreter::attribute(const Value &value, const Value &name) {
  requireDefined(value);
  const std::string &key = name.text().bytes();
  if (Object *object = value.object()) {
    if (object->kind == Object::Kind::Namespace) {
      const Value *field = static_cast<Namespace *>(object)->find(key);
      if (field)
        return *field;
    }
    if (object->kind == Object::Kind::Loop && key != "cycle" &&
        key != "changed")
      return loopAttribute(*static_cast<Loop *>(object), key);
    if (object->kind == Object::Kind::Macro && key == "name")
      return string(static_cast<Macro *>(object)->def.name);
    if (object->kind == Object::Kind::Cycler && key == "current") {
      auto *cycler = static_cast<Cycler *>(object);
      return cycler->items[cycler->at];
    }
  }
  if (const SeqBox *seq = value.seq(); seq && seq->kind == SeqKind::Group) {
    if (key == "grouper")
      return seq->items[0];
    if (key == "list")
      return seq->items[1];
  }
  if (isMutator(value, key))
    return undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe",
                    shorten(name), typeName(value)));
  if (const Builtin *builtin = findMethod(value, key))
    return Value(heap.make<Method>(*builtin, value));
  if (const DictBox *dict = value.dict())
    if (const Value *found = dict->find(meter, key))
      return *found;
  return undefined(fmt::format("'{} object' has no attribute '{}'",
                               typeName(value), shorten(name)));
}

Value Interpreter::item(const Value &value, const Value &key) {
  requireDefined(value);
  Int index;
  if (const DictBox *dict = value.dict()) {
    if (const Value *found = isHashable(key) ? dict->find(meter, key) : nullptr)
      return *found;
  } else if (key.asInt(index)) {
    if (value.isString()) {
      const std::string &bytes = value.text().bytes();
      meter.touch(bytes.size());
      Int count = static_cast<Int>(countChars(bytes));
      if (index < 0)
        index += count;
      if (index >= 0 && index < count) {
        size_t at = 0;
        for (; index > 0; --index)
          at += charWidth(bytes, at);
        return makeString(&meter,
                          value.text().slice(at, at + charWidth(bytes, at)));
      }
    } else if (const SeqBox *seq = value.seq(); seq && !seq->isView()) {
      Int count = static_cast<Int>(seq->items.size());
      if (index < 0)
        index += count;
      if (index >= 0 && index < count)
        return seq->items[static_cast<size_t>(index)];
    }
  }
  if (key.isString()) {
    // Not a key: the name of an attribute, but never of a dict's entry again.
    if (!value.isDict() || findMethod(value, key.text().bytes()))
      return attribute(value, key);
    return undefined(
        fmt::format("'dict object' has no attribute '{}'", shorten(key)));
  }
  return undefined(
      fmt::format("'{} object' has no such element", typeName(value)));
}

Value Interpreter::slice(const Value &value, const Value &from, const Value &to,
                         const Value &by) {
  requireDefined(value);
  const SeqBox *seq = value.seq();
  if (!value.isString() && (!seq || seq->isView()))
    raise("'{}' object is not subscriptable", typeName(value));
  Int step = 1, low, high;
  auto bound = [](const Value &given, Int &place) {
    requireDefined(given);
    if (!given.isNone() && !given.asInt(place))
      raise("slice indices must be integers or None");
  };
  bound(by, step);
  bound(from, low);
  bound(to, high);
  if (step == 0)
    raise("slice step cannot be zero");
  std::vector<size_t> chars; // Starts of the string's characters, and its end.
  Int count;
  if (seq) {
    count = static_cast<Int>(seq->items.size());
  } else {
    const std::string &bytes = value.text().bytes();
    meter.step(1 + bytes.size() / 8);
    for (size_t at = 0; at < bytes.size(); at += charWidth(bytes, at))
      chars.push_back(at);
    count = static_cast<Int>(chars.size());
    chars.push_back(bytes.size());
  }
  // Python's PySlice_AdjustIndices.
  auto clamp = [&](Int i) {
    if (i < 0)
      i = std::max<Int>(i + count, step < 0 ? -1 : 0);
    return std::min(i, step < 0 ? count - 1 : count);
  };
  low = from.isNone() ? (step < 0 ? count - 1 : 0) : clamp(low);
  high = to.isNone() ? (step < 0 ? -1 : count) : clamp(high);
  // Beyond the length of any range a step makes no difference.
  constexpr Int longStep = 1 << 20;
  if (seq && seq->kind == SeqKind::Range)
    return makeRange(meter, seq->start + low * seq->step,
                     seq->start + high * seq->step,
                     seq->step * std::clamp(step, -longStep, longStep));
  if (!seq && step == 1)
    return makeString(&meter, low < high ? value.text().slice(
                                               chars[static_cast<size_t>(low)],
                                               chars[static_cast<size_t>(high)])
                                         : Text());
  Values items;
  Builder text(meter);
  for (Int i = low; step > 0 ? i < high : i > high; i += step) {
    auto at = static_cast<size_t>(i);
    meter.step(1);
    if (seq)
      items.push_back(seq->items[at]);
    else
      text.add(value.text(), chars[at], chars[at + 1]);
  }
  if (!seq)
    return text.take();
  return makeSeq(meter, seq->isTuple() ? SeqKind::Tuple : SeqKind::List,
                 std::move(items));
}

Value Interpreter::path(const Value &value, const Value &path,
                        const Value *fallback) {
  auto fill = [&](Value found) {
    return fallback && found.isUndefined() ? *fallback : found;
  };
  if (path.isNone())
    return value;
  if (!path.isString())
    return fill(item(value, path));
  Value at = value;
  const std::string &bytes = path.text().bytes();
  for (size_t begin = 0;;) {
    size_t end = std::min(bytes.find('.', begin), bytes.size());
    std::string part = bytes.substr(begin, end - begin);
    meter.step();
    bool number = !part.empty() && part.size() < 18 &&
                  part.find_first_not_of("0123456789") == std::string::npos;
    at = fill(item(at, number ? Value(static_cast<Int>(std::stoll(part)))
                              : string(std::move(part))));
    if (end == bytes.size())
      return at;
    begin = end + 1;
  }
}

bool Interpreter::isIterable(const Value &value) const {
  Object *object = value.object();
  return value.isString() || value.isSeq() || value.isDict() ||
         value.isUndefined() ||
         (object && (object->kind == Object::Kind::Iterator ||
                     object->kind == Object::Kind::Loop));
}

Values Interpreter::iterate(const Value &value) {
  Values items;
  if (const SeqBox *seq = value.seq()) {
    meter.step(seq->items.size() / 8);
    items = seq->items;
  } else if (const DictBox *dict = value.dict()) {
    meter.step(dict->entries.size() / 8);
    for (const auto &[key, entry] : dict->entries)
      items.push_back(key);
  } else if (value.isString()) {
    const std::string &bytes = value.text().bytes();
    meter.step(bytes.size());
    for (size_t at = 0; at < bytes.size();) {
      size_t end = at + charWidth(bytes, at);
      items.push_back(makeString(&meter, value.text().slice(at, end)));
      at = end;
    }
  } else if (!isIterable(value)) {
    raise("'{}' object is not iterable", typeName(value));
  } else if (Object *object = value.object()) {
    if (object->kind == Object::Kind::Loop)
      raise("iterating over 'loop' is not supported");
    auto *iterator = static_cast<Iterator *>(object);
    meter.step(iterator->items.size() / 8);
    items.assign(iterator->items.begin() + static_cast<long>(iterator->next),
                 iterator->items.end());
    iterator->items = {};
    iterator->next = 0;
    iterator->discharge();
    iterator->charge(&meter, sizeof(Iterator));
  }
  return items;
}

Value Interpreter::iterator(Values items) {
  auto *iterator = heap.make<Iterator>();
  iterator->charge(&meter, items.size() * sizeof(Value));
  iterator->items = std::move(items);
  return Value(iterator);
}

Value Interpreter::call(const Value &callee, Args &args) {
  requireDefined(callee);
  if (Object *object = callee.object()) {
    switch (object->kind) {
    case Object::Kind::Macro:
      return callMacro(*static_cast<Macro *>(object), args);
    case Object::Kind::Method: {
      auto *method = static_cast<Method *>(object);
      return method->builtin.call(*this, method->self, args);
    }
    case Object::Kind::Function:
      return static_cast<Function *>(object)->builtin.call(*this, Value(),
                                                           args);
    case Object::Kind::Joiner: {
      Bound bound("joiner", args, {});
      auto *joiner = static_cast<Joiner *>(object);
      bool first = !joiner->used;
      joiner->used = true;
      return first ? string("") : joiner->separator;
    }
    default:
      break;
    }
  }
  raise("'{}' object is not callable", typeName(callee));
}

Value Interpreter::applyFilter(std::string_view name, const Value &value,
                               Args &args) {
  meter.step();
  const Builtin *builtin = findFilter(name);
  if (!builtin)
    raise("no filter named '{}'", name.substr(0, 80));
  return builtin->call(*this, value, args);
}

bool Interpreter::applyTest(std::string_view name, const Value &value,
                            Args &args) {
  meter.step();
  const Builtin *builtin = findTest(name);
  if (!builtin)
    raise("no test named '{}'", name.substr(0, 80));
  return truthy(builtin->call(*this, value, args));
}

} // namespace lathe::runtime::jinja

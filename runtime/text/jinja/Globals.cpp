// Global functions, and the methods of dicts and lists.
#include "runtime/text/jinja/Interpreter.h"

#include <algorithm>
#include <ctime>

namespace lathe::runtime::jinja {

namespace {

Value globalRange(Interpreter &in, const Value &, Args &args) {
  Bound bound("range", args, {"start", "stop", "step"}, 1);
  if (!args.named.empty())
    raise("range() takes no keyword arguments");
  Int first = bound.integer(0, 0);
  Int step = bound.integer(2, 1);
  if (step == 0)
    raise("range() arg 3 must not be zero");
  return bound[1] ? makeRange(in.budget(), first, bound.integer(1, 0), step)
                  : makeRange(in.budget(), 0, first, step);
}

/// Entries of dict(…) and namespace(…): a mapping or pairs, then keywords.
std::vector<std::pair<Value, Value>> entriesOf(Interpreter &in, Args &args) {
  std::vector<std::pair<Value, Value>> entries;
  if (args.positional.size() > 1)
    raise("dict expected at most 1 argument, got {}", args.positional.size());
  if (!args.positional.empty()) {
    const Value &from = args.positional[0];
    requireDefined(from);
    if (const DictBox *dict = from.dict())
      entries = dict->entries;
    else
      for (const Value &pair : in.iterate(from)) {
        Values parts = in.iterate(pair);
        if (parts.size() != 2)
          raise("dictionary update sequence element has length {}; 2 is "
                "required",
                parts.size());
        insertEntry(in.budget(), entries, parts[0], parts[1]);
      }
  }
  for (const auto &[name, value] : args.named)
    insertEntry(in.budget(), entries, in.string(name), value);
  return entries;
}

Value globalDict(Interpreter &in, const Value &, Args &args) {
  return makeDict(in.budget(), entriesOf(in, args));
}

Value globalNamespace(Interpreter &in, const Value &, Args &args) {
  auto *ns = in.objects().make<Namespace>();
  for (auto &[key, value] : entriesOf(in, args)) {
    if (!key.isString())
      raise("attribute names of a namespace must be strings");
    ns->charge(&in.budget(), sizeof(ns->fields[0]) + key.text().size());
    ns->fields.emplace_back(key.text().bytes(), std::move(value));
  }
  return Value(ns);
}

Value globalRaise(Interpreter &in, const Value &, Args &args) {
  Bound bound("raise_exception", args, {"message"}, 1);
  throw Failure{ErrorKind::InvalidInput,
                toStr(in.budget(), *bound[0]).text().bytes(), Failure::nowhere,
                true};
}

Value globalStrftimeNow(Interpreter &in, const Value &, Args &args) {
  Bound bound("strftime_now", args, {"format"}, 1);
  if (!bound[0]->isString())
    raise("strftime() argument must be str");
  const Text &format = bound[0]->text();
  const std::string &bytes = format.bytes();
  std::tm now = in.clock()();
  Builder out(in.budget());
  // One known specifier at a time: widths of glibc's own (%999999d) stay out.
  static constexpr std::string_view known =
      "aAwdbBmyYHIMSpjUWcxXDFTReGguVnthZz";
  for (size_t at = 0; at < bytes.size();) {
    in.budget().step();
    size_t percent = std::min(bytes.find('%', at), bytes.size());
    out.add(format, at, percent);
    if (percent == bytes.size())
      break;
    at = percent + 1;
    std::string spec = "%";
    if (at < bytes.size() && bytes[at] == '-')
      spec += bytes[at++];
    if (at == bytes.size()) {
      out.add(spec);
      break;
    }
    char c = bytes[at++];
    if (c == '%') {
      out.add("%");
    } else if (c == 'f') {
      out.add("000000"); // A std::tm has no microseconds.
    } else if (known.find(c) != std::string_view::npos) {
      char buffer[128];
      spec += c;
      out.add(std::string_view(
          buffer, strftime(buffer, sizeof(buffer), spec.c_str(), &now)));
    } else {
      raise("unsupported format character in strftime_now");
    }
  }
  return out.take();
}

Value globalJoiner(Interpreter &in, const Value &, Args &args) {
  Bound bound("joiner", args, {"sep"});
  return Value(
      in.objects().make<Joiner>(bound[0] ? *bound[0] : in.string(", ")));
}

Value globalCycler(Interpreter &in, const Value &, Args &args) {
  if (args.positional.empty() || !args.named.empty())
    raise("at least one item has to be provided");
  auto *cycler = in.objects().make<Cycler>(args.positional);
  cycler->charge(&in.budget(), args.positional.size() * sizeof(Value));
  return Value(cycler);
}

Value view(Interpreter &in, const Value &self, SeqKind kind) {
  Values items;
  for (const auto &[key, value] : self.dict()->entries)
    items.push_back(kind == SeqKind::Keys ? key
                    : kind == SeqKind::DictValues
                        ? value
                        : makeSeq(in.budget(), SeqKind::Tuple, {key, value}));
  return makeSeq(in.budget(), kind, std::move(items));
}

Value dictItems(Interpreter &in, const Value &self, Args &args) {
  Bound bound("items", args, {});
  return view(in, self, SeqKind::Items);
}

Value dictKeys(Interpreter &in, const Value &self, Args &args) {
  Bound bound("keys", args, {});
  return view(in, self, SeqKind::Keys);
}

Value dictValues(Interpreter &in, const Value &self, Args &args) {
  Bound bound("values", args, {});
  return view(in, self, SeqKind::DictValues);
}

Value dictGet(Interpreter &in, const Value &self, Args &args) {
  Bound bound("get", args, {"key", "default"}, 1);
  if (!args.named.empty())
    raise("dict.get() takes no keyword arguments");
  if (!isHashable(*bound[0]))
    raise("unhashable type: '{}'", typeName(*bound[0]));
  if (const Value *found = self.dict()->find(in.budget(), *bound[0]))
    return *found;
  return bound[1] ? *bound[1] : Value();
}

/// Values are immutable, so a copy is the value.
Value copySelf(Interpreter &in, const Value &self, Args &args) {
  Bound bound("copy", args, {});
  return self;
}

Value listCount(Interpreter &in, const Value &self, Args &args) {
  Bound bound("count", args, {"value"}, 1);
  Int count = 0;
  for (const Value &item : self.seq()->items)
    count += equals(in.budget(), item, *bound[0]);
  return Value(count);
}

Value listIndex(Interpreter &in, const Value &self, Args &args) {
  Bound bound("index", args, {"value", "start", "stop"}, 1);
  const Values &items = self.seq()->items;
  auto size = static_cast<Int>(items.size());
  auto clamp = [&](Int i) {
    return std::clamp<Int>(i < 0 ? i + size : i, 0, size);
  };
  Int stop = clamp(bound.integer(2, size));
  for (Int i = clamp(bound.integer(1, 0)); i < stop; ++i)
    if (equals(in.budget(), items[static_cast<size_t>(i)], *bound[0]))
      return Value(i);
  raise("value is not in list");
}

constexpr Builtin globals[] = {
    {"range", globalRange},
    {"dict", globalDict},
    {"namespace", globalNamespace},
    {"raise_exception", globalRaise},
    {"strftime_now", globalStrftimeNow},
    {"joiner", globalJoiner},
    {"cycler", globalCycler},
};

constexpr Builtin ofDict[] = {
    {"items", dictItems}, {"keys", dictKeys}, {"values", dictValues},
    {"get", dictGet},     {"copy", copySelf},
};

constexpr Builtin ofList[] = {
    {"count", listCount}, {"index", listIndex}, {"copy", copySelf}};

} // namespace

BuiltinTable globalTable() { return {globals, std::size(globals)}; }
BuiltinTable dictMethods() { return {ofDict, std::size(ofDict)}; }
BuiltinTable listMethods() { return {ofList, std::size(ofList)}; }

} // namespace lathe::runtime::jinja

#include "runtime/text/jinja/Builtins.h"

#include "runtime/text/jinja/Interpreter.h"

#include <unordered_map>

namespace lathe::runtime::jinja {

namespace {

using Index = std::unordered_map<std::string_view, const Builtin *>;

Index makeIndex(std::initializer_list<BuiltinTable> tables) {
  Index index;
  for (const BuiltinTable &table : tables)
    for (size_t i = 0; i < table.size; ++i)
      index.emplace(table.begin[i].name, &table.begin[i]);
  return index;
}

const Builtin *find(const Index &index, std::string_view name) {
  auto it = index.find(name);
  return it == index.end() ? nullptr : it->second;
}

Value cyclerNext(Interpreter &in, const Value &self, Args &args) {
  Bound bound("next", args, {});
  auto *cycler = static_cast<Cycler *>(self.object());
  Value item = cycler->items[cycler->at];
  cycler->at = (cycler->at + 1) % cycler->items.size();
  return item;
}

Value cyclerReset(Interpreter &in, const Value &self, Args &args) {
  Bound bound("reset", args, {});
  static_cast<Cycler *>(self.object())->at = 0;
  return Value();
}

Value loopCycle(Interpreter &in, const Value &self, Args &args) {
  if (args.positional.empty())
    raise("no items for cycling given");
  auto at = static_cast<size_t>(static_cast<Loop *>(self.object())->index0);
  return args.positional[at % args.positional.size()];
}

Value loopChanged(Interpreter &in, const Value &self, Args &args) {
  auto *loop = static_cast<Loop *>(self.object());
  bool same =
      loop->changedKnown && loop->changed.size() == args.positional.size();
  for (size_t i = 0; same && i < args.positional.size(); ++i)
    same = equals(in.budget(), loop->changed[i], args.positional[i]);
  loop->changedKnown = true;
  loop->changed = args.positional;
  return Value(!same);
}

constexpr Builtin cyclerMethods[] = {{"next", cyclerNext},
                                     {"reset", cyclerReset}};
constexpr Builtin loopMethods[] = {{"cycle", loopCycle},
                                   {"changed", loopChanged}};

} // namespace

const Builtin *findFilter(std::string_view name) {
  static const Index index = makeIndex(
      {textFilters(), numberFilters(), sequenceFilters(), selectFilters()});
  return find(index, name);
}

const Builtin *findTest(std::string_view name) {
  static const Index index = makeIndex({testTable()});
  return find(index, name);
}

const Builtin *findGlobal(std::string_view name) {
  static const Index index = makeIndex({globalTable()});
  return find(index, name);
}

const Builtin *findMethod(const Value &self, std::string_view name) {
  static const Index ofString =
      makeIndex({stringSearchMethods(), stringShapeMethods()});
  static const Index ofDict = makeIndex({dictMethods()});
  static const Index ofList = makeIndex({listMethods()});
  static const Index ofCycler = makeIndex({{cyclerMethods, 2}});
  static const Index ofLoop = makeIndex({{loopMethods, 2}});
  if (self.isString())
    return find(ofString, name);
  if (self.isDict())
    return find(ofDict, name);
  if (const SeqBox *seq = self.seq()) {
    if (seq->isView() || (name == "copy" && seq->kind != SeqKind::List))
      return nullptr;
    return find(ofList, name);
  }
  if (Object *object = self.object()) {
    if (object->kind == Object::Kind::Cycler)
      return find(ofCycler, name);
    if (object->kind == Object::Kind::Loop)
      return find(ofLoop, name);
  }
  return nullptr;
}

Bound::Bound(std::string_view function, const Args &args,
             std::initializer_list<std::string_view> parameters,
             size_t required)
    : values(parameters.size()) {
  if (args.positional.size() > parameters.size())
    raise("{}() takes at most {} arguments ({} given)", function,
          parameters.size(), args.positional.size());
  for (size_t i = 0; i < args.positional.size(); ++i)
    values[i] = &args.positional[i];
  for (const auto &[name, value] : args.named) {
    size_t i = 0;
    for (; i < parameters.size(); ++i)
      if (*(parameters.begin() + i) == name)
        break;
    if (i == parameters.size())
      raise("{}() got an unexpected keyword argument '{}'", function,
            std::string_view(name).substr(0, 80));
    if (values[i])
      raise("{}() got multiple values for argument '{}'", function, name);
    values[i] = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (!values[i])
      raise("{}() missing argument '{}'", function, *(parameters.begin() + i));
}

bool Bound::flag(size_t i, bool fallback) const {
  return values[i] ? truthy(*values[i]) : fallback;
}

Int Bound::integer(size_t i, Int fallback) const {
  if (!values[i])
    return fallback;
  requireDefined(*values[i]);
  Int result;
  if (!values[i]->asInt(result))
    raise("'{}' object cannot be interpreted as an integer",
          typeName(*values[i]));
  return result;
}

const Value *Bound::optional(size_t i) const {
  return values[i] && !values[i]->isNone() ? values[i] : nullptr;
}

} // namespace lathe::runtime::jinja

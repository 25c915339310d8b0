// Filters that apply other filters and tests: map, select and their kin.
#include "runtime/text/jinja/Interpreter.h"

namespace lathe::runtime::jinja {

namespace {

const std::string &nameOf(const Value &value) {
  if (!value.isString())
    raise("the name of a filter or test must be a string, not '{}'",
          typeName(value));
  return value.text().bytes();
}

Value filterMap(Interpreter &in, const Value &self, Args &args) {
  Values results;
  if (!truthy(self))
    return in.iterator({});
  bool byAttribute = false;
  for (const auto &[name, value] : args.named)
    byAttribute |= args.positional.empty() && name == "attribute";
  if (byAttribute) {
    Bound bound("map", args, {"attribute", "default"});
    for (const Value &item : in.iterate(self))
      results.push_back(in.path(item, *bound[0], bound.optional(1)));
    return in.iterator(std::move(results));
  }
  if (args.positional.empty())
    raise("map requires a filter argument");
  std::string name = nameOf(args.positional[0]);
  args.positional.erase(args.positional.begin());
  for (const Value &item : in.iterate(self)) {
    Args copy = args;
    results.push_back(in.applyFilter(name, item, copy));
  }
  return in.iterator(std::move(results));
}

Value select(Interpreter &in, const Value &self, Args &args, bool byAttribute,
             bool keep) {
  if (!truthy(self))
    return in.iterator({});
  Value attribute;
  if (byAttribute) {
    if (args.positional.empty())
      raise("Missing parameter for attribute name");
    attribute = args.positional[0];
    args.positional.erase(args.positional.begin());
  }
  std::string test;
  if (!args.positional.empty()) {
    test = nameOf(args.positional[0]);
    args.positional.erase(args.positional.begin());
  }
  Values kept;
  for (const Value &item : in.iterate(self)) {
    Value subject = byAttribute ? in.path(item, attribute, nullptr) : item;
    Args copy = args;
    bool passes =
        test.empty() ? truthy(subject) : in.applyTest(test, subject, copy);
    if (passes == keep)
      kept.push_back(item);
  }
  return in.iterator(std::move(kept));
}

Value filterSelect(Interpreter &in, const Value &self, Args &args) {
  return select(in, self, args, false, true);
}

Value filterReject(Interpreter &in, const Value &self, Args &args) {
  return select(in, self, args, false, false);
}

Value filterSelectattr(Interpreter &in, const Value &self, Args &args) {
  return select(in, self, args, true, true);
}

Value filterRejectattr(Interpreter &in, const Value &self, Args &args) {
  return select(in, self, args, true, false);
}

Value filterDefault(Interpreter &in, const Value &self, Args &args) {
  Bound bound("default", args, {"default_value", "boolean"});
  if (!self.isUndefined() && (!bound.flag(1, false) || truthy(self)))
    return self;
  return bound[0] ? *bound[0] : in.string("");
}

Value filterAttr(Interpreter &in, const Value &self, Args &args) {
  Bound bound("attr", args, {"name"}, 1);
  nameOf(*bound[0]);
  requireDefined(self);
  // Only attributes, never the entries of a dict.
  if (self.isDict() && !findMethod(self, bound[0]->text().bytes()))
    return in.undefined("'dict object' has no such attribute");
  return in.attribute(self, *bound[0]);
}

constexpr Builtin table[] = {
    {"map", filterMap},
    {"select", filterSelect},
    {"reject", filterReject},
    {"selectattr", filterSelectattr},
    {"rejectattr", filterRejectattr},
    {"default", filterDefault},
    {"d", filterDefault},
    {"attr", filterAttr},
};

} // namespace

BuiltinTable selectFilters() { return {table, std::size(table)}; }

} // namespace lathe::runtime::jinja

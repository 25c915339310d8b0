// Filters over whole sequences: order, pieces, sums.
#include "runtime/text/jinja/Interpreter.h"
#include "runtime/text/jinja/StableSort.h"
#include "runtime/text/jinja/TextOps.h"

#include <algorithm>

namespace lathe::runtime::jinja {

namespace {

/// What a value is ordered by: its attribute, strings without case.
struct KeyMaker {
  Interpreter &in;
  const Value *attribute;
  bool caseSensitive;
  const Value *fallback = nullptr;
  /// "a,b" makes keys of several attributes.
  bool several = false;

  Value one(const Value &item, const Value *path) const {
    Value key = path ? in.path(item, *path, fallback) : item;
    if (!caseSensitive && key.isString())
      return changeCase(in.budget(), key.text(), Case::Lower);
    return key;
  }

  Value operator()(const Value &item) const {
    in.budget().step();
    if (!several)
      return one(item, attribute);
    // As lists, which compare undefined items as equal.
    Values keys;
    if (!attribute || !attribute->isString()) {
      keys.push_back(one(item, attribute));
      return in.list(std::move(keys));
    }
    const std::string &paths = attribute->text().bytes();
    for (size_t begin = 0; begin <= paths.size();) {
      size_t end = std::min(paths.find(',', begin), paths.size());
      Value path = in.string(paths.substr(begin, end - begin));
      keys.push_back(one(item, &path));
      begin = end + 1;
    }
    return in.list(std::move(keys));
  }
};

/// Sorts stably by `key`; comparison may raise.
Values sorted(Interpreter &in, const Values &items, bool reverse,
              const std::function<Value(const Value &)> &key) {
  Values keys, result;
  for (const Value &item : items)
    keys.push_back(key(item));
  for (size_t i : stableOrder(items.size(), [&](size_t a, size_t b) {
         return reverse ? lessThan(in.budget(), keys[b], keys[a])
                        : lessThan(in.budget(), keys[a], keys[b]);
       }))
    result.push_back(items[i]);
  return result;
}

Value filterLength(Interpreter &in, const Value &self, Args &args) {
  Bound bound("length", args, {});
  if (self.isString()) {
    in.budget().touch(self.text().size());
    return Value(static_cast<Int>(countChars(self.text().bytes())));
  }
  if (const SeqBox *seq = self.seq())
    return Value(static_cast<Int>(seq->items.size()));
  if (const DictBox *dict = self.dict())
    return Value(static_cast<Int>(dict->entries.size()));
  if (self.isUndefined())
    return Value(0);
  if (self.object() && self.object()->kind == Object::Kind::Loop)
    return in.attribute(self, in.string("length"));
  raise("object of type '{}' has no len()", typeName(self));
}

Value filterFirst(Interpreter &in, const Value &self, Args &args) {
  Bound bound("first", args, {});
  if (self.isString() && !self.text().empty())
    return in.item(self, Value(0));
  if (const SeqBox *seq = self.seq(); seq && !seq->items.empty())
    return seq->items.front();
  if (Object *object = self.object();
      object && object->kind == Object::Kind::Iterator) {
    auto *iterator = static_cast<Iterator *>(object);
    if (iterator->next < iterator->items.size())
      return iterator->items[iterator->next++];
  }
  Values items = in.iterate(self);
  return items.empty() ? in.undefined("No first item, sequence was empty.")
                       : items.front();
}

Value filterLast(Interpreter &in, const Value &self, Args &args) {
  Bound bound("last", args, {});
  if (self.object())
    raise("'{}' object is not reversible", typeName(self));
  if (self.isString() && !self.text().empty())
    return in.item(self, Value(-1));
  if (const SeqBox *seq = self.seq(); seq && !seq->items.empty())
    return seq->items.back();
  Values items = in.iterate(self);
  return items.empty() ? in.undefined("No last item, sequence was empty.")
                       : items.back();
}

Value filterList(Interpreter &in, const Value &self, Args &args) {
  Bound bound("list", args, {});
  return in.list(in.iterate(self));
}

Value filterReverse(Interpreter &in, const Value &self, Args &args) {
  Bound bound("reverse", args, {});
  if (self.isString())
    return in.slice(self, Value(), Value(), Value(-1));
  Values items = in.iterate(self);
  std::reverse(items.begin(), items.end());
  return self.object() ? in.list(std::move(items))
                       : in.iterator(std::move(items));
}

Value filterSort(Interpreter &in, const Value &self, Args &args) {
  Bound bound("sort", args, {"reverse", "case_sensitive", "attribute"});
  KeyMaker key{in, bound.optional(2), bound.flag(1, false)};
  key.several = true;
  return in.list(sorted(in, in.iterate(self), bound.flag(0, false), key));
}

Value filterDictsort(Interpreter &in, const Value &self, Args &args) {
  Bound bound("dictsort", args, {"case_sensitive", "by", "reverse"});
  requireDefined(self);
  std::string by = "key";
  if (bound[1])
    by = toStr(in.budget(), *bound[1]).text().bytes();
  if (by != "key" && by != "value")
    raise("You can only sort by either \"key\" or \"value\"");
  if (!self.isDict())
    raise("'{}' object has no attribute 'items'", typeName(self));
  Values items;
  for (const auto &[key, value] : self.dict()->entries)
    items.push_back(makeSeq(in.budget(), SeqKind::Tuple, {key, value}));
  KeyMaker key{in, nullptr, bound.flag(0, false)};
  size_t part = by == "key" ? 0 : 1;
  return in.list(
      sorted(in, std::move(items), bound.flag(2, false),
             [&](const Value &item) { return key(item.seq()->items[part]); }));
}

Value filterUnique(Interpreter &in, const Value &self, Args &args) {
  Bound bound("unique", args, {"case_sensitive", "attribute"});
  KeyMaker key{in, bound.optional(1), bound.flag(0, false)};
  Values seen, kept;
  for (const Value &item : in.iterate(self)) {
    Value k = key(item);
    if (!isHashable(k))
      raise("unhashable type: '{}'", typeName(k));
    bool known = std::any_of(seen.begin(), seen.end(), [&](const Value &s) {
      return equals(in.budget(), s, k);
    });
    if (known)
      continue;
    seen.push_back(std::move(k));
    kept.push_back(item);
  }
  return in.iterator(std::move(kept));
}

Value extreme(Interpreter &in, const Value &self, Args &args, bool largest) {
  Bound bound(largest ? "max" : "min", args, {"case_sensitive", "attribute"});
  KeyMaker key{in, bound.optional(1), bound.flag(0, false)};
  Values items = in.iterate(self);
  if (items.empty())
    return in.undefined("No aggregated item, sequence was empty.");
  size_t best = 0;
  Value bestKey = key(items[0]);
  for (size_t i = 1; i < items.size(); ++i) {
    Value k = key(items[i]);
    if (largest ? lessThan(in.budget(), bestKey, k)
                : lessThan(in.budget(), k, bestKey)) {
      best = i;
      bestKey = std::move(k);
    }
  }
  return items[best];
}

Value filterMin(Interpreter &in, const Value &self, Args &args) {
  return extreme(in, self, args, false);
}

Value filterMax(Interpreter &in, const Value &self, Args &args) {
  return extreme(in, self, args, true);
}

Value filterSum(Interpreter &in, const Value &self, Args &args) {
  Bound bound("sum", args, {"attribute", "start"});
  Value total = bound[1] ? *bound[1] : Value(0);
  if (total.isString())
    raise("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value &item : in.iterate(self)) {
    const Value *attribute = bound.optional(0);
    total =
        in.arithmetic(BinaryOp::Add, total,
                      attribute ? in.path(item, *attribute, nullptr) : item);
  }
  return total;
}

Value filterItems(Interpreter &in, const Value &self, Args &args) {
  Bound bound("items", args, {});
  if (self.isUndefined())
    return in.iterator({});
  if (!self.isDict())
    raise("Can only get item pairs from a mapping.");
  Values items;
  for (const auto &[key, value] : self.dict()->entries)
    items.push_back(makeSeq(in.budget(), SeqKind::Tuple, {key, value}));
  return in.iterator(std::move(items));
}

Value filterBatch(Interpreter &in, const Value &self, Args &args) {
  Bound bound("batch", args, {"linecount", "fill_with"}, 1);
  Int size = bound.integer(0, 0);
  Values lines, line;
  for (Value &item : in.iterate(self)) {
    if (static_cast<Int>(line.size()) == size) {
      // Like jinja2, which yields an empty line first if size is 0.
      lines.push_back(in.list(std::move(line)));
      line.clear();
    }
    line.push_back(std::move(item));
  }
  if (!line.empty()) {
    if (const Value *fill = bound.optional(1))
      while (static_cast<Int>(line.size()) < size) {
        in.budget().step();
        in.budget().reserve(sizeof(Value));
        in.budget().release(sizeof(Value));
        line.push_back(*fill);
      }
    lines.push_back(in.list(std::move(line)));
  }
  return in.iterator(std::move(lines));
}

Value filterSlice(Interpreter &in, const Value &self, Args &args) {
  Bound bound("slice", args, {"slices", "fill_with"}, 1);
  Values items = in.iterate(self);
  Int slices = bound.integer(0, 0);
  if (slices == 0)
    raise("integer division or modulo by zero");
  Values result;
  auto count = static_cast<Int>(items.size());
  size_t at = 0;
  for (Int i = 0; i < slices; ++i) {
    in.budget().step();
    bool extra = i < count % slices;
    auto size = static_cast<size_t>(count / slices + (extra ? 1 : 0));
    Values part(items.begin() + static_cast<long>(at),
                items.begin() + static_cast<long>(at + size));
    at += size;
    if (const Value *fill = bound.optional(1); fill && !extra)
      part.push_back(*fill);
    result.push_back(in.list(std::move(part)));
  }
  return in.iterator(std::move(result));
}

Value filterGroupby(Interpreter &in, const Value &self, Args &args) {
  Bound bound("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  bool caseSensitive = bound.flag(2, false);
  const Value *fallback = bound.optional(1);
  KeyMaker key{in, bound.optional(0), caseSensitive, fallback};
  KeyMaker shown{in, bound.optional(0), true, fallback};
  Values groups, members;
  Value groupKey;
  auto close = [&] {
    if (members.empty())
      return;
    Value name = shown(members[0]);
    Value list = in.list(std::move(members));
    groups.push_back(makeSeq(in.budget(), SeqKind::Group, {name, list}));
    members.clear();
  };
  for (const Value &item : sorted(in, in.iterate(self), false, key)) {
    Value k = key(item);
    if (!members.empty() && !equals(in.budget(), groupKey, k))
      close();
    groupKey = std::move(k);
    members.push_back(item);
  }
  close();
  return in.list(std::move(groups));
}

constexpr Builtin table[] = {
    {"length", filterLength}, {"count", filterLength},
    {"first", filterFirst},   {"last", filterLast},
    {"list", filterList},     {"reverse", filterReverse},
    {"sort", filterSort},     {"dictsort", filterDictsort},
    {"unique", filterUnique}, {"min", filterMin},
    {"max", filterMax},       {"sum", filterSum},
    {"items", filterItems},   {"batch", filterBatch},
    {"slice", filterSlice},   {"groupby", filterGroupby},
};

} // namespace

BuiltinTable sequenceFilters() { return {table, std::size(table)}; }

} // namespace lathe::runtime::jinja

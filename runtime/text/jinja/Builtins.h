/// \file
/// The filters, tests, methods and global functions a template can call, and
/// how they take their arguments.
#ifndef LATHE_RUNTIME_TEXT_JINJA_BUILTINS_H
#define LATHE_RUNTIME_TEXT_JINJA_BUILTINS_H

#include "runtime/text/jinja/Value.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe::runtime::jinja {

class Interpreter;

/// Evaluated arguments.
struct Args {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// `self` is the piped value of a filter or test, the receiver of a method,
/// None for a global function.
using BuiltinFn = Value (*)(Interpreter &in, const Value &self, Args &args);

struct Builtin {
  std::string_view name;
  BuiltinFn call;
};

/// nullptr if there is none of that name.
const Builtin *findFilter(std::string_view name);
const Builtin *findTest(std::string_view name);
const Builtin *findGlobal(std::string_view name);
/// The method `name` of `self`'s type.
const Builtin *findMethod(const Value &self, std::string_view name);

/// Arguments bound to parameter names as Python binds them; raises on too
/// many, unknown, doubled or missing ones. Refers to `args`, which must live
/// as long.
class Bound {
public:
  Bound(std::string_view function, const Args &args,
        std::initializer_list<std::string_view> parameters,
        size_t required = 0);

  /// Null if not given.
  const Value *operator[](size_t i) const { return values[i]; }
  bool flag(size_t i, bool fallback) const;
  Int integer(size_t i, Int fallback) const;
  /// Null if not given or None.
  const Value *optional(size_t i) const;

private:
  std::vector<const Value *> values;
};

// The tables, one per file of builtins.
struct BuiltinTable {
  const Builtin *begin;
  size_t size;
};
BuiltinTable textFilters();
BuiltinTable numberFilters();
BuiltinTable sequenceFilters();
BuiltinTable selectFilters();
BuiltinTable testTable();
BuiltinTable globalTable();
BuiltinTable stringSearchMethods();
BuiltinTable stringShapeMethods();
BuiltinTable dictMethods();
BuiltinTable listMethods();

/// json.dumps as Hugging Face's `tojson` filter calls it.
Value filterToJson(Interpreter &in, const Value &self, Args &args);
/// `format % value`.
Value formatPercent(Meter &meter, const Text &format, const Value &value);
/// `format.format(…)`.
Value formatBraces(Interpreter &in, const Text &format, const Args &args);

} // namespace lathe::runtime::jinja

#endif // LATHE_RUNTIME_TEXT_JINJA_BUILTINS_H

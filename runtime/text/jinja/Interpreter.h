/// \file
/// Walks a template's tree and writes the output. One object per rendering.
#ifndef LATHE_RUNTIME_TEXT_JINJA_INTERPRETER_H
#define LATHE_RUNTIME_TEXT_JINJA_INTERPRETER_H

#include "runtime/text/jinja/Ast.h"

#include <memory>
#include <vector>

namespace lathe::runtime::jinja {

/// Variables of one block; blocks nest by `parent`.
struct Scope : Metered {
  Scope *parent = nullptr;
  std::vector<std::pair<uint32_t, Value>> variables;
  /// A macro refers to it: it must live as long as the rendering.
  bool captured = false;
};

/// A macro with the scope it was defined in.
struct Macro : Object {
  Macro(const MacroDef &def, Scope *scope)
      : Object(Kind::Macro), def(def), scope(scope) {}
  const MacroDef &def;
  Scope *scope;
};

/// A method taken as a value: `{% set f = x.strip %}`.
struct Method : Object {
  Method(const Builtin &builtin, Value self)
      : Object(Kind::Method), builtin(builtin), self(std::move(self)) {}
  const Builtin &builtin;
  Value self;
};

struct Function : Object {
  explicit Function(const Builtin &builtin)
      : Object(Kind::Function), builtin(builtin) {}
  const Builtin &builtin;
};

/// The running loop: what `loop` is, and where the items come from. Items are
/// pulled one by one, as far as `loop.last` and the like look ahead, so that
/// a filter sees what the body has changed.
struct Loop : Object {
  Loop() : Object(Kind::Loop) {}
  Values source;
  size_t next = 0;
  const Stmt *stmt = nullptr;
  Scope *outer = nullptr;
  Values ahead; ///< Pulled and not yet current; ahead[aheadAt] comes first.
  size_t aheadAt = 0;
  Value previous, current;
  Int index0 = -1;
  Values changed;
  bool changedKnown = false;
};

struct Joiner : Object {
  explicit Joiner(Value separator)
      : Object(Kind::Joiner), separator(std::move(separator)) {}
  Value separator;
  bool used = false;
};

struct Cycler : Object {
  explicit Cycler(Values items)
      : Object(Kind::Cycler), items(std::move(items)) {}
  Values items;
  size_t at = 0;
};

/// Evaluates statements and expressions. Throws Failure.
class Interpreter {
public:
  Interpreter(const detail::Program &program, const RenderOptions &options);
  ~Interpreter();

  /// Renders the program with `context`.
  Text run(const nlohmann::ordered_json &context);

  /// Where the last statement or call began, for messages.
  size_t position() const { return offset; }

  Meter &budget() { return meter; }
  Heap &objects() { return heap; }
  const Clock &clock() const { return options.clock; }

  // What builtins need.
  Value string(std::string bytes) {
    return makeString(&meter, std::move(bytes));
  }
  Value undefined(std::string message) {
    return makeUndefined(&meter, std::move(message));
  }
  Value list(Values items) {
    return makeSeq(meter, SeqKind::List, std::move(items));
  }
  /// A generator over `items`.
  Value iterator(Values items);
  /// The items of anything iterable; a generator is used up. Raises if it is
  /// not iterable.
  Values iterate(const Value &value);
  bool isIterable(const Value &value) const;
  /// `value.name` and `value[key]`, undefined if there is none.
  Value attribute(const Value &value, const Value &name);
  Value item(const Value &value, const Value &key);
  /// `value[from:to:step]`; None for a bound that is not given.
  Value slice(const Value &value, const Value &from, const Value &to,
              const Value &step);
  /// A dotted path like "function.name", or an index.
  Value path(const Value &value, const Value &path, const Value *fallback);
  Value call(const Value &callee, Args &args);
  Value applyFilter(std::string_view name, const Value &value, Args &args);
  bool applyTest(std::string_view name, const Value &value, Args &args);
  bool contains(const Value &container, const Value &value);
  Value arithmetic(BinaryOp op, const Value &a, const Value &b);
  bool compare(CompareOp op, const Value &a, const Value &b);

private:
  enum class Flow { Next, Break, Continue };

  /// One level of recursion.
  class Level {
  public:
    explicit Level(Interpreter &in) : in(in) {
      if (++in.depth > in.meter.depthLimit()) {
        --in.depth;
        throw Failure{ErrorKind::Exhausted,
                      fmt::format("the template nests deeper than {} levels",
                                  in.meter.depthLimit())};
      }
      in.meter.step();
    }
    ~Level() { --in.depth; }

  private:
    Interpreter &in;
  };

  /// A scope for a C++ block.
  class ScopeGuard {
  public:
    ScopeGuard(Interpreter &in, Scope *parent);
    ~ScopeGuard();

  private:
    Interpreter &in;
    Scope *saved;
    std::unique_ptr<Scope> scope;
  };

  /// Sends output to another builder for a C++ block.
  class Capture {
  public:
    Capture(Interpreter &in, Builder &out) : in(in), saved(in.out) {
      in.out = &out;
    }
    ~Capture() { in.out = saved; }

  private:
    Interpreter &in;
    Builder *saved;
  };

  // Statements (Interpreter.cpp).
  Flow execBody(const Body &body);
  Flow exec(const Stmt &stmt);
  Flow execIf(const Stmt &stmt);
  Flow execFor(const Stmt &stmt);
  Flow execCapturing(const Stmt &stmt);
  void execWith(const Stmt &stmt);
  void execCall(const Stmt &stmt);
  bool pull(Loop &loop, Value &item);
  bool peek(Loop &loop);
  void emit(const Value &value);
  void assign(const Target &target, const Value &value);
  void define(uint32_t symbol, Value value);
  Value lookup(uint32_t symbol);
  Value makeMacro(const MacroDef &def);
  Value callMacro(const Macro &macro, Args &args);
  Value loopAttribute(Loop &loop, std::string_view name);
  void loadContext(const nlohmann::ordered_json &context);

  // Expressions (Evaluator.cpp).
  Value eval(const Expr &expr);
  Value evalDict(const Expr &expr);
  Value evalItem(const Expr &expr);
  Value evalSlice(const Expr &expr);
  Value evalCall(const Expr &expr, const Value *caller);
  Value evalFilter(const Expr &expr, const Value *piped);
  Value evalTest(const Expr &expr);
  Value evalNegation(const Expr &expr);
  Value evalLogic(const Expr &expr);
  Value evalBinary(const Expr &expr);
  Value evalConcat(const Expr &expr);
  Value evalCompare(const Expr &expr);
  Value evalCond(const Expr &expr);
  Values evalAll(const std::vector<ExprPtr> &exprs);
  void evalArgs(const ArgList &list, Args &args);
  Value method(const Value &self, std::string_view name);

  const detail::Program &program;
  const RenderOptions &options;
  Meter meter;
  Heap heap;
  std::vector<std::unique_ptr<Scope>> keptScopes;
  Scope *scope = nullptr;
  std::unique_ptr<Builder> mainOut;
  Builder *out = nullptr;
  size_t depth = 0;
  uint32_t loopSymbol = 0;
  bool usesLoop = false;
  size_t offset = 0;
};

/// The context's JSON as a value whose strings carry provenance.
class ContextReader {
public:
  ContextReader(Meter &meter, const RenderOptions &options)
      : meter(meter), options(options) {}

  /// The value of the top-level entry `name`.
  Value read(const std::string &name, const nlohmann::ordered_json &json);

private:
  enum class Place { Trusted, Other, Messages, Message };
  Value convert(const nlohmann::ordered_json &json, Place place, size_t depth);
  Value text(const std::string &bytes, bool trusted);

  Meter &meter;
  const RenderOptions &options;
};

} // namespace lathe::runtime::jinja

#endif // LATHE_RUNTIME_TEXT_JINJA_INTERPRETER_H

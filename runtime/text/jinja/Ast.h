/// \file
/// The syntax tree of a template and the tables that go with it. Immutable
/// once parsed; shared by all renderings.
#ifndef LATHE_RUNTIME_TEXT_JINJA_AST_H
#define LATHE_RUNTIME_TEXT_JINJA_AST_H

#include "runtime/text/jinja/Builtins.h"
#include "runtime/text/jinja/Value.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lathe::runtime::jinja {

/// Trees are at most this deep, which bounds every recursion over them.
constexpr size_t maxTreeDepth = 100;

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

/// Arguments of a call, filter or test, in source order.
struct ArgList {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star, doubleStar;
};

enum class BinaryOp : uint8_t { Add, Sub, Mul, Div, FloorDiv, Mod, Pow };
enum class CompareOp : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, In, NotIn };

struct Expr {
  enum class Kind : uint8_t {
    Literal, ///< literal
    Name,    ///< symbol
    List,    ///< kids
    Tuple,   ///< kids
    Dict,    ///< kids: key, value, key, value …
    Attr,    ///< kids[0].text
    Item,    ///< kids[0][kids[1]]
    Slice,   ///< kids[0][kids[1]:kids[2]:kids[3]]; the last three may be null
    Call,    ///< kids[0](args)
    Filter,  ///< kids[0] | text(args); no kid at the head of a filter block
    Test,    ///< kids[0] is text(args)
    Neg,     ///< -kids[0]
    Pos,     ///< +kids[0]
    Not,     ///< not kids[0]
    And,     ///< kids[0] and kids[1] and …
    Or,      ///< kids[0] or kids[1] or …
    Binary,  ///< kids[0] op kids[1]
    Concat,  ///< kids[0] ~ kids[1] ~ …
    Compare, ///< kids[0] ops[0] kids[1] ops[1] kids[2] …
    Cond,    ///< kids[1] if kids[0] else kids[2] (may be null)
  };

  Kind kind;
  BinaryOp op = BinaryOp::Add;
  uint16_t depth = 1;
  uint32_t symbol = 0;
  size_t offset = 0; ///< Byte in the source.
  Value literal;
  Value text;                       ///< Attribute name, as a string.
  const Builtin *builtin = nullptr; ///< Of a known filter or test.
  std::vector<CompareOp> ops;
  std::vector<ExprPtr> kids;
  std::unique_ptr<ArgList> args;
};

/// What an assignment writes to: a name, an attribute of a namespace, or a
/// tuple of these.
struct Target {
  enum class Kind : uint8_t { Name, Field, Tuple };
  Kind kind = Kind::Name;
  uint32_t symbol = 0;
  std::string field;
  std::vector<Target> parts;
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct Parameter {
  uint32_t symbol;
  std::string name;
  ExprPtr fallback; ///< Null: none.
};

/// A macro, or the body of a call block.
struct MacroDef {
  std::string name;
  std::vector<Parameter> parameters;
  bool usesCaller = false, usesVarargs = false, usesKwargs = false;
  Body body;
};

struct Stmt {
  enum class Kind : uint8_t {
    Data,     ///< literal
    Output,   ///< expr
    If,       ///< conditions[i] -> bodies[i]; a last body without condition
    For,      ///< target, expr, filter, bodies[0], else bodies[1]
    Set,      ///< target = expr
    SetBlock, ///< target = bodies[0], through `expr` (filters) if there
    Macro,    ///< macro, symbol
    Call,     ///< expr is the call, macro the caller
    Filter,   ///< expr is the filter chain, bodies[0]
    With,     ///< withTargets[i] = conditions[i], bodies[0]
    Scope,    ///< bodies[0] in a scope of its own: {% generation %}
    Break,
    Continue,
  };

  Kind kind;
  uint32_t symbol = 0;
  size_t offset = 0;
  Value literal;
  Target target;
  ExprPtr expr, filter;
  std::vector<ExprPtr> conditions;
  std::vector<Target> withTargets;
  std::vector<Body> bodies;
  std::unique_ptr<MacroDef> macro;
};

namespace detail {

struct Program {
  std::string source;             ///< Newlines normalised.
  std::vector<std::string> names; ///< By symbol.
  Body body;

  /// "line L, column C", from 1.
  std::string where(size_t offset) const;
};

} // namespace detail

} // namespace lathe::runtime::jinja

#endif // LATHE_RUNTIME_TEXT_JINJA_AST_H

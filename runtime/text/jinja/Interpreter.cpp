#include "runtime/text/jinja/Interpreter.h"

#include <algorithm>

namespace lathe::runtime::jinja {

Interpreter::Interpreter(const detail::Program &program,
                         const RenderOptions &options)
    : program(program), options(options), meter(options.limits), heap(meter) {
  auto it = std::find(program.names.begin(), program.names.end(), "loop");
  usesLoop = it != program.names.end();
  loopSymbol = static_cast<uint32_t>(it - program.names.begin());
}

Interpreter::~Interpreter() = default;

Text Interpreter::run(const nlohmann::ordered_json &context) {
  ScopeGuard globals(*this, nullptr);
  for (uint32_t i = 0; i < program.names.size(); ++i)
    if (const Builtin *builtin = findGlobal(program.names[i]))
      define(i, Value(heap.make<Function>(*builtin)));
  loadContext(context);
  mainOut = std::make_unique<Builder>(meter);
  out = mainOut.get();
  execBody(program.body);
  return mainOut->takeText();
}

void Interpreter::loadContext(const nlohmann::ordered_json &context) {
  ContextReader reader(meter, options);
  for (uint32_t i = 0; i < program.names.size(); ++i)
    if (auto it = context.find(program.names[i]); it != context.end())
      define(i, reader.read(program.names[i], *it));
}

Interpreter::ScopeGuard::ScopeGuard(Interpreter &in, Scope *parent)
    : in(in), saved(in.scope), scope(std::make_unique<Scope>()) {
  scope->charge(&in.meter, sizeof(Scope));
  scope->parent = parent;
  in.scope = scope.get();
}

Interpreter::ScopeGuard::~ScopeGuard() {
  in.scope = saved;
  if (scope->captured)
    in.keptScopes.push_back(std::move(scope));
}

void Interpreter::define(uint32_t symbol, Value value) {
  for (auto &[name, old] : scope->variables)
    if (name == symbol) {
      old = std::move(value);
      return;
    }
  scope->charge(&meter, sizeof(scope->variables[0]));
  scope->variables.emplace_back(symbol, std::move(value));
}

Value Interpreter::lookup(uint32_t symbol) {
  for (const Scope *s = scope; s; s = s->parent) {
    meter.step(s->variables.size() / 16);
    for (const auto &[name, value] : s->variables)
      if (name == symbol)
        return value;
  }
  return undefined(fmt::format("'{}' is undefined", program.names[symbol]));
}

void Interpreter::emit(const Value &value) {
  appendStr(*out, value);
  if (out == mainOut.get() && out->size() > meter.outputLimit())
    throw Failure{ErrorKind::Exhausted,
                  fmt::format("the template writes more than {} bytes",
                              meter.outputLimit())};
}

Interpreter::Flow Interpreter::execBody(const Body &body) {
  Level level(*this);
  for (const auto &stmt : body)
    if (Flow flow = exec(*stmt); flow != Flow::Next)
      return flow;
  return Flow::Next;
}

Interpreter::Flow Interpreter::exec(const Stmt &stmt) {
  meter.step();
  offset = stmt.offset;
  switch (stmt.kind) {
  case Stmt::Kind::Data:
    emit(stmt.literal);
    break;
  case Stmt::Kind::Output:
    emit(eval(*stmt.expr));
    break;
  case Stmt::Kind::If:
    return execIf(stmt);
  case Stmt::Kind::For:
    return execFor(stmt);
  case Stmt::Kind::Set:
    assign(stmt.target, eval(*stmt.expr));
    break;
  case Stmt::Kind::SetBlock:
  case Stmt::Kind::Filter:
    return execCapturing(stmt);
  case Stmt::Kind::Macro:
    define(stmt.symbol, makeMacro(*stmt.macro));
    break;
  case Stmt::Kind::Call:
    execCall(stmt);
    break;
  case Stmt::Kind::With:
    execWith(stmt);
    break;
  case Stmt::Kind::Scope: {
    ScopeGuard inner(*this, scope);
    return execBody(stmt.bodies[0]);
  }
  case Stmt::Kind::Break:
    return Flow::Break;
  case Stmt::Kind::Continue:
    return Flow::Continue;
  }
  return Flow::Next;
}

Interpreter::Flow Interpreter::execIf(const Stmt &stmt) {
  for (size_t i = 0; i < stmt.bodies.size(); ++i)
    if (i == stmt.conditions.size() || truthy(eval(*stmt.conditions[i])))
      return execBody(stmt.bodies[i]);
  return Flow::Next;
}

Interpreter::Flow Interpreter::execFor(const Stmt &stmt) {
  Value iterable = eval(*stmt.expr);
  Loop *loop = heap.make<Loop>();
  loop->source = iterate(iterable);
  loop->charge(&meter, loop->source.size() * sizeof(Value));
  loop->stmt = &stmt;
  loop->outer = scope;
  bool completed = false;
  for (;;) {
    Value item;
    if (!pull(*loop, item))
      break;
    meter.step();
    loop->previous = std::move(loop->current);
    loop->current = item;
    ++loop->index0;
    ScopeGuard inner(*this, loop->outer);
    if (usesLoop)
      define(loopSymbol, Value(loop));
    assign(stmt.target, item);
    Flow flow = execBody(stmt.bodies[0]);
    completed |= flow == Flow::Next;
    if (flow == Flow::Break)
      break;
  }
  loop->source = {};
  loop->ahead = {};
  loop->discharge();
  loop->charge(&meter, sizeof(Loop));
  // jinja2 marks a loop as run at the end of a turn, so one whose turns all
  // ended in break or continue takes its else branch as well.
  if (!completed && stmt.bodies.size() > 1) {
    ScopeGuard inner(*this, scope);
    return execBody(stmt.bodies[1]);
  }
  return Flow::Next;
}

bool Interpreter::pull(Loop &loop, Value &item) {
  if (loop.aheadAt < loop.ahead.size()) {
    item = std::move(loop.ahead[loop.aheadAt++]);
    if (loop.aheadAt == loop.ahead.size()) {
      loop.ahead.clear();
      loop.aheadAt = 0;
    }
    return true;
  }
  while (loop.next < loop.source.size()) {
    item = loop.source[loop.next++];
    if (!loop.stmt->filter)
      return true;
    meter.step();
    ScopeGuard inner(*this, loop.outer);
    assign(loop.stmt->target, item);
    if (truthy(eval(*loop.stmt->filter)))
      return true;
  }
  return false;
}

bool Interpreter::peek(Loop &loop) {
  if (loop.aheadAt < loop.ahead.size())
    return true;
  Value item;
  if (!pull(loop, item))
    return false;
  loop.ahead.push_back(std::move(item));
  return true;
}

Value Interpreter::loopAttribute(Loop &loop, std::string_view name) {
  auto remaining = [&]() -> Int {
    // What is pulled goes behind what already waits.
    Values rest(std::make_move_iterator(loop.ahead.begin() +
                                        static_cast<long>(loop.aheadAt)),
                std::make_move_iterator(loop.ahead.end()));
    loop.ahead.clear();
    loop.aheadAt = 0;
    Value item;
    while (pull(loop, item))
      rest.push_back(std::move(item));
    loop.ahead = std::move(rest);
    return static_cast<Int>(loop.ahead.size());
  };
  auto length = [&]() -> Int {
    // Without a filter the length is known without looking ahead.
    if (!loop.stmt->filter)
      return static_cast<Int>(loop.source.size());
    return loop.index0 + 1 + remaining();
  };
  if (name == "index")
    return Value(loop.index0 + 1);
  if (name == "index0")
    return Value(loop.index0);
  if (name == "first")
    return Value(loop.index0 == 0);
  if (name == "last")
    return Value(!peek(loop));
  if (name == "length")
    return Value(length());
  if (name == "revindex")
    return Value(length() - loop.index0);
  if (name == "revindex0")
    return Value(length() - loop.index0 - 1);
  if (name == "depth")
    return Value(1);
  if (name == "depth0")
    return Value(0);
  if (name == "previtem")
    return loop.index0 == 0 ? undefined("there is no previous item")
                            : loop.previous;
  if (name == "nextitem")
    return peek(loop) ? loop.ahead[loop.aheadAt]
                      : undefined("there is no next item");
  return undefined(fmt::format("'loop' has no attribute '{}'", name));
}

Interpreter::Flow Interpreter::execCapturing(const Stmt &stmt) {
  Builder captured(meter);
  Flow flow;
  {
    Capture redirect(*this, captured);
    ScopeGuard inner(*this, scope);
    flow = execBody(stmt.bodies[0]);
  }
  if (flow != Flow::Next)
    return flow;
  Value text = captured.take();
  if (stmt.expr)
    text = evalFilter(*stmt.expr, &text);
  if (stmt.kind == Stmt::Kind::Filter)
    emit(text);
  else
    assign(stmt.target, text);
  return Flow::Next;
}

void Interpreter::execWith(const Stmt &stmt) {
  Values values;
  for (const ExprPtr &expr : stmt.conditions)
    values.push_back(eval(*expr));
  ScopeGuard inner(*this, scope);
  for (size_t i = 0; i < values.size(); ++i)
    assign(stmt.withTargets[i], values[i]);
  execBody(stmt.bodies[0]);
}

void Interpreter::execCall(const Stmt &stmt) {
  Value caller = makeMacro(*stmt.macro);
  emit(evalCall(*stmt.expr, &caller));
}

void Interpreter::assign(const Target &target, const Value &value) {
  switch (target.kind) {
  case Target::Kind::Name:
    define(target.symbol, value);
    return;
  case Target::Kind::Field: {
    Value place = lookup(target.symbol);
    Object *object = place.object();
    if (!object || object->kind != Object::Kind::Namespace)
      raise("cannot assign attribute on non-namespace object");
    auto &ns = *static_cast<Namespace *>(object);
    meter.step(ns.fields.size() / 16);
    for (auto &[name, old] : ns.fields)
      if (name == target.field) {
        old = value;
        return;
      }
    ns.charge(&meter, sizeof(ns.fields[0]) + target.field.size());
    ns.fields.emplace_back(target.field, value);
    return;
  }
  case Target::Kind::Tuple: {
    requireDefined(value);
    Values items = iterate(value);
    if (items.size() != target.parts.size())
      raise("cannot unpack {} values into {} names", items.size(),
            target.parts.size());
    for (size_t i = 0; i < items.size(); ++i)
      assign(target.parts[i], items[i]);
    return;
  }
  }
}

Value Interpreter::makeMacro(const MacroDef &def) {
  for (Scope *s = scope; s && !s->captured; s = s->parent)
    s->captured = true;
  return Value(heap.make<Macro>(def, scope));
}

Value Interpreter::callMacro(const Macro &macro, Args &args) {
  Level level(*this);
  const MacroDef &def = macro.def;
  size_t count = def.parameters.size();
  auto takeNamed = [&](std::string_view name) -> const Value * {
    for (auto &[key, value] : args.named)
      if (key == name) {
        key.clear(); // Marks it as used; no argument has an empty name.
        return &value;
      }
    return nullptr;
  };
  ScopeGuard inner(*this, macro.scope);
  std::vector<const Value *> given(count);
  for (size_t i = 0; i < count; ++i)
    given[i] = i < args.positional.size() ? &args.positional[i]
                                          : takeNamed(def.parameters[i].name);
  auto special = [&](std::string_view name, Value value) {
    auto it = std::find(program.names.begin(), program.names.end(), name);
    define(static_cast<uint32_t>(it - program.names.begin()), std::move(value));
  };
  if (def.usesCaller) {
    const Value *caller = takeNamed("caller");
    special("caller", caller ? *caller : undefined("No caller defined"));
  }
  std::vector<std::pair<Value, Value>> rest;
  for (auto &[key, value] : args.named) {
    if (key.empty())
      continue;
    if (!def.usesKwargs)
      raise("macro '{}' takes no keyword argument '{}'", def.name, key);
    rest.emplace_back(string(key), value);
  }
  if (def.usesKwargs)
    special("kwargs", makeDict(meter, std::move(rest)));
  if (!def.usesVarargs && args.positional.size() > count)
    raise("macro '{}' takes not more than {} argument(s)", def.name, count);
  if (def.usesVarargs) {
    auto from = args.positional.begin() +
                static_cast<long>(std::min(count, args.positional.size()));
    special("varargs", makeSeq(meter, SeqKind::Tuple,
                               Values(from, args.positional.end())));
  }
  for (size_t i = 0; i < count; ++i) {
    const Parameter &parameter = def.parameters[i];
    if (given[i])
      define(parameter.symbol, *given[i]);
    else if (parameter.fallback)
      define(parameter.symbol, eval(*parameter.fallback));
    else
      define(parameter.symbol,
             undefined(fmt::format("parameter '{}' was not provided",
                                   parameter.name)));
  }
  Builder text(meter);
  Capture redirect(*this, text);
  size_t callSite = offset;
  execBody(def.body);
  offset = callSite;
  return text.take();
}

} // namespace lathe::runtime::jinja

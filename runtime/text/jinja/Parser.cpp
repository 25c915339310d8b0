#include "runtime/text/jinja/Parser.h"

#include <algorithm>

namespace lathe::runtime::jinja {

namespace {

std::string describe(const Token &token) {
  switch (token.kind) {
  case Token::Kind::Data:
    return "text";
  case Token::Kind::BlockBegin:
    return "'{%'";
  case Token::Kind::BlockEnd:
    return "'%}'";
  case Token::Kind::VariableBegin:
    return "'{{'";
  case Token::Kind::VariableEnd:
    return "'}}'";
  case Token::Kind::String:
    return "a string";
  case Token::Kind::Integer:
  case Token::Kind::Float:
    return "a number";
  case Token::Kind::Name:
  case Token::Kind::Operator:
    return "'" + token.text.substr(0, 40) + "'";
  case Token::Kind::End:
    break;
  }
  return "the end of the template";
}

bool isConstant(std::string_view name) {
  return name == "true" || name == "false" || name == "none" ||
         name == "True" || name == "False" || name == "None";
}

} // namespace

Parser::Nest::Nest(Parser &parser) : parser(parser) {
  if (++parser.nesting > maxTreeDepth)
    parser.failAt(parser.current().offset,
                  fmt::format("nested deeper than {} levels", maxTreeDepth));
}

void Parser::parse(detail::Program &program) {
  program.body = parseBody({});
  program.names = std::move(names);
}

Token Parser::next() {
  Token token = std::move(tokens[at]);
  if (token.kind == Token::Kind::End)
    tokens[at] = token;
  else
    ++at;
  return token;
}

bool Parser::skipName(std::string_view name) {
  if (!current().isName(name))
    return false;
  ++at;
  return true;
}

bool Parser::skipOperator(std::string_view op) {
  if (!current().isOperator(op))
    return false;
  ++at;
  return true;
}

void Parser::expectOperator(std::string_view op) {
  if (!skipOperator(op))
    unexpected(fmt::format("'{}'", op));
}

void Parser::expectName(std::string_view name) {
  if (!skipName(name))
    unexpected(fmt::format("'{}'", name));
}

void Parser::expectBlockEnd() {
  if (current().kind != Token::Kind::BlockEnd)
    unexpected("'%}'");
  ++at;
}

std::string Parser::identifier() {
  if (current().kind != Token::Kind::Name)
    unexpected("a name");
  return next().text;
}

void Parser::failAt(size_t offset, std::string message) const {
  throw Failure{ErrorKind::InvalidInput, std::move(message), offset};
}

void Parser::unexpected(std::string_view wanted) const {
  failAt(current().offset,
         fmt::format("expected {}, found {}", wanted, describe(current())));
}

uint32_t Parser::symbol(const std::string &name) {
  auto [it, added] =
      symbols.try_emplace(name, static_cast<uint32_t>(names.size()));
  if (added)
    names.push_back(name);
  return it->second;
}

Body Parser::parseBody(Names ends) {
  Nest nest(*this);
  Body body;
  for (;;) {
    const Token &token = current();
    if (token.kind == Token::Kind::End) {
      if (ends.size() > 0)
        unexpected(fmt::format("'{{% {} %}}'", *(ends.end() - 1)));
      return body;
    }
    if (token.kind == Token::Kind::BlockBegin) {
      ++at;
      if (current().kind == Token::Kind::Name &&
          std::find(ends.begin(), ends.end(), current().text) != ends.end())
        return body;
      body.push_back(parseStatement());
      expectBlockEnd();
      continue;
    }
    auto stmt = std::make_unique<Stmt>();
    stmt->offset = token.offset;
    if (token.kind == Token::Kind::Data) {
      stmt->kind = Stmt::Kind::Data;
      stmt->literal = makeString(nullptr, next().text);
    } else {
      stmt->kind = Stmt::Kind::Output;
      ++at; // {{
      stmt->expr = parseTuple(true, false);
      if (current().kind != Token::Kind::VariableEnd)
        unexpected("'}}'");
      ++at;
    }
    body.push_back(std::move(stmt));
  }
}

Body Parser::parseBlock(Names ends) {
  skipOperator(":");
  expectBlockEnd();
  return parseBody(ends);
}

Body Parser::parseBlockUntil(std::string_view end) {
  Body body = parseBlock({end});
  ++at;
  return body;
}

std::unique_ptr<Stmt> Parser::parseStatement() {
  auto stmt = std::make_unique<Stmt>();
  if (current().kind != Token::Kind::Name)
    unexpected("a tag name");
  stmt->offset = current().offset;
  std::string name = next().text;
  if (name == "if") {
    parseIf(*stmt);
  } else if (name == "for") {
    parseFor(*stmt);
  } else if (name == "set") {
    parseSet(*stmt);
  } else if (name == "macro") {
    parseMacro(*stmt);
  } else if (name == "call") {
    parseCallBlock(*stmt);
  } else if (name == "with") {
    parseWith(*stmt);
  } else if (name == "filter") {
    stmt->kind = Stmt::Kind::Filter;
    stmt->expr = parseFilter(nullptr);
    while (skipOperator("|"))
      stmt->expr = parseFilter(std::move(stmt->expr));
    stmt->bodies.push_back(parseBlockUntil("endfilter"));
  } else if (name == "generation") {
    stmt->kind = Stmt::Kind::Scope;
    Saved<bool> noLoop(inLoop, false);
    stmt->bodies.push_back(parseBlockUntil("endgeneration"));
  } else if (name == "break" || name == "continue") {
    if (!inLoop)
      failAt(stmt->offset, fmt::format("'{}' outside of a loop", name));
    stmt->kind = name == "break" ? Stmt::Kind::Break : Stmt::Kind::Continue;
  } else {
    failAt(stmt->offset, fmt::format("unknown tag '{}'", name.substr(0, 40)));
  }
  return stmt;
}

void Parser::parseIf(Stmt &stmt) {
  stmt.kind = Stmt::Kind::If;
  Saved<size_t> soft(conditionals, conditionals + 1);
  for (;;) {
    stmt.conditions.push_back(parseTuple(false, false));
    stmt.bodies.push_back(parseBlock({"elif", "else", "endif"}));
    std::string end = next().text;
    if (end == "elif")
      continue;
    if (end == "else")
      stmt.bodies.push_back(parseBlockUntil("endif"));
    return;
  }
}

void Parser::parseFor(Stmt &stmt) {
  stmt.kind = Stmt::Kind::For;
  stmt.target = parseTarget(false, "in");
  expectName("in");
  stmt.expr = parseTuple(false, false);
  if (skipName("if"))
    stmt.filter = parseExpression();
  if (current().isName("recursive"))
    failAt(current().offset, "recursive loops are not supported");
  {
    Saved<bool> loop(inLoop, true);
    stmt.bodies.push_back(parseBlock({"else", "endfor"}));
  }
  if (next().text == "else")
    stmt.bodies.push_back(parseBlockUntil("endfor"));
}

void Parser::parseSet(Stmt &stmt) {
  stmt.target = parseTarget(true, "");
  if (skipOperator("=")) {
    stmt.kind = Stmt::Kind::Set;
    stmt.expr = parseTuple(true, false);
    return;
  }
  stmt.kind = Stmt::Kind::SetBlock;
  while (skipOperator("|"))
    stmt.expr = parseFilter(std::move(stmt.expr));
  stmt.bodies.push_back(parseBlockUntil("endset"));
}

void Parser::parseMacro(Stmt &stmt) {
  stmt.kind = Stmt::Kind::Macro;
  stmt.macro = std::make_unique<MacroDef>();
  stmt.macro->name = identifier();
  stmt.symbol = symbol(stmt.macro->name);
  parseSignature(*stmt.macro);
  parseMacroBody(*stmt.macro, "endmacro");
}

void Parser::parseCallBlock(Stmt &stmt) {
  stmt.kind = Stmt::Kind::Call;
  stmt.macro = std::make_unique<MacroDef>();
  stmt.macro->name = "caller";
  if (current().isOperator("("))
    parseSignature(*stmt.macro);
  stmt.expr = parseExpression();
  if (stmt.expr->kind != Expr::Kind::Call)
    failAt(stmt.offset, "'call' needs a macro call");
  parseMacroBody(*stmt.macro, "endcall");
}

void Parser::parseWith(Stmt &stmt) {
  stmt.kind = Stmt::Kind::With;
  while (current().kind != Token::Kind::BlockEnd) {
    if (!stmt.conditions.empty())
      expectOperator(",");
    stmt.withTargets.push_back(parseTargetPart(false));
    expectOperator("=");
    stmt.conditions.push_back(parseExpression());
  }
  stmt.bodies.push_back(parseBlockUntil("endwith"));
}

void Parser::parseSignature(MacroDef &macro) {
  expectOperator("(");
  while (!current().isOperator(")")) {
    if (!macro.parameters.empty())
      expectOperator(",");
    size_t offset = current().offset;
    Parameter parameter;
    parameter.name = identifier();
    if (isConstant(parameter.name))
      failAt(offset, "cannot assign to a constant");
    for (const Parameter &other : macro.parameters)
      if (other.name == parameter.name)
        failAt(offset, fmt::format("duplicate argument '{}'",
                                   parameter.name.substr(0, 40)));
    parameter.symbol = symbol(parameter.name);
    if (skipOperator("="))
      parameter.fallback = parseExpression();
    else if (!macro.parameters.empty() && macro.parameters.back().fallback)
      failAt(offset, "argument without default follows one with default");
    macro.parameters.push_back(std::move(parameter));
  }
  expectOperator(")");
}

void Parser::parseMacroBody(MacroDef &macro, std::string_view end) {
  Saved<bool> noLoop(inLoop, false);
  macros.push_back(&macro);
  macro.body = parseBlockUntil(end);
  macros.pop_back();
  for (const Parameter &parameter : macro.parameters) {
    macro.usesCaller &= parameter.name != "caller";
    macro.usesVarargs &= parameter.name != "varargs";
    macro.usesKwargs &= parameter.name != "kwargs";
  }
}

Target Parser::parseTarget(bool fields, std::string_view end) {
  Target first = parseTargetPart(fields);
  if (!current().isOperator(","))
    return first;
  Target tuple;
  tuple.kind = Target::Kind::Tuple;
  tuple.parts.push_back(std::move(first));
  while (skipOperator(",")) {
    if (atTupleEnd() || current().isOperator("=") ||
        (!end.empty() && current().isName(end)))
      break;
    tuple.parts.push_back(parseTargetPart(fields));
  }
  return tuple;
}

Target Parser::parseTargetPart(bool fields) {
  Nest nest(*this);
  if (skipOperator("(")) {
    Target inner = parseTarget(fields, "");
    expectOperator(")");
    return inner;
  }
  Target target;
  size_t offset = current().offset;
  std::string name = identifier();
  if (isConstant(name))
    failAt(offset, "cannot assign to a constant");
  target.symbol = symbol(name);
  if (fields && skipOperator(".")) {
    target.kind = Target::Kind::Field;
    target.field = identifier();
  }
  return target;
}

} // namespace lathe::runtime::jinja

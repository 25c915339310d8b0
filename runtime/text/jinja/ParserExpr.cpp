#include "runtime/text/jinja/Parser.h"

#include <algorithm>

namespace lathe::runtime::jinja {

ExprPtr Parser::make(Expr::Kind kind, size_t offset) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->offset = offset;
  return expr;
}

ExprPtr Parser::finish(ExprPtr expr) {
  size_t inner = 0;
  auto look = [&](const ExprPtr &kid) {
    if (kid)
      inner = std::max<size_t>(inner, kid->depth);
  };
  for (const ExprPtr &kid : expr->kids)
    look(kid);
  if (expr->args) {
    for (const ExprPtr &kid : expr->args->positional)
      look(kid);
    for (const auto &[name, kid] : expr->args->named)
      look(kid);
    look(expr->args->star);
    look(expr->args->doubleStar);
  }
  if (inner >= maxTreeDepth)
    failAt(expr->offset,
           fmt::format("expression deeper than {} levels", maxTreeDepth));
  expr->depth = static_cast<uint16_t>(inner + 1);
  return expr;
}

ExprPtr Parser::parseExpression() {
  Nest nest(*this);
  size_t offset = current().offset;
  ExprPtr value = parseOr();
  while (skipName("if")) {
    Saved<size_t> soft(conditionals, conditionals + 1);
    ExprPtr cond = make(Expr::Kind::Cond, offset);
    ExprPtr condition = parseOr();
    ExprPtr otherwise = skipName("else") ? parseExpression() : nullptr;
    cond->kids.push_back(std::move(condition));
    cond->kids.push_back(std::move(value));
    cond->kids.push_back(std::move(otherwise));
    value = finish(std::move(cond));
  }
  return value;
}

ExprPtr Parser::parseOr() {
  ExprPtr first = parseAnd();
  if (!current().isName("or"))
    return first;
  ExprPtr expr = make(Expr::Kind::Or, first->offset);
  expr->kids.push_back(std::move(first));
  while (skipName("or"))
    expr->kids.push_back(parseAnd());
  return finish(std::move(expr));
}

ExprPtr Parser::parseAnd() {
  ExprPtr first = parseNot();
  if (!current().isName("and"))
    return first;
  ExprPtr expr = make(Expr::Kind::And, first->offset);
  expr->kids.push_back(std::move(first));
  while (skipName("and"))
    expr->kids.push_back(parseNot());
  return finish(std::move(expr));
}

ExprPtr Parser::parseNot() {
  if (!current().isName("not"))
    return parseCompare();
  Nest nest(*this);
  ExprPtr expr = make(Expr::Kind::Not, next().offset);
  expr->kids.push_back(parseNot());
  return finish(std::move(expr));
}

ExprPtr Parser::parseCompare() {
  static constexpr std::pair<std::string_view, CompareOp> operators[] = {
      {"==", CompareOp::Eq}, {"!=", CompareOp::Ne}, {"<", CompareOp::Lt},
      {"<=", CompareOp::Le}, {">", CompareOp::Gt},  {">=", CompareOp::Ge}};
  ExprPtr first = parseSum();
  ExprPtr expr;
  for (;;) {
    const CompareOp *op = nullptr;
    static constexpr CompareOp in = CompareOp::In, notIn = CompareOp::NotIn;
    size_t width = 1;
    for (const auto &[text, candidate] : operators)
      if (current().isOperator(text))
        op = &candidate;
    if (current().isName("in")) {
      op = &in;
    } else if (current().isName("not") && look().isName("in")) {
      op = &notIn;
      width = 2;
    }
    if (!op)
      break;
    if (!expr) {
      expr = make(Expr::Kind::Compare, current().offset);
      expr->kids.push_back(std::move(first));
    }
    at += width;
    expr->ops.push_back(*op);
    expr->kids.push_back(parseSum());
  }
  return expr ? finish(std::move(expr)) : std::move(first);
}

ExprPtr Parser::binary(BinaryOp op, ExprPtr left, ExprPtr right,
                       size_t offset) {
  ExprPtr expr = make(Expr::Kind::Binary, offset);
  expr->op = op;
  expr->kids.push_back(std::move(left));
  expr->kids.push_back(std::move(right));
  return finish(std::move(expr));
}

ExprPtr Parser::parseSum() {
  ExprPtr left = parseConcat();
  for (;;) {
    size_t offset = current().offset;
    if (skipOperator("+"))
      left = binary(BinaryOp::Add, std::move(left), parseConcat(), offset);
    else if (skipOperator("-"))
      left = binary(BinaryOp::Sub, std::move(left), parseConcat(), offset);
    else
      return left;
  }
}

ExprPtr Parser::parseConcat() {
  ExprPtr first = parseProduct();
  if (!current().isOperator("~"))
    return first;
  ExprPtr expr = make(Expr::Kind::Concat, first->offset);
  expr->kids.push_back(std::move(first));
  while (skipOperator("~"))
    expr->kids.push_back(parseProduct());
  return finish(std::move(expr));
}

ExprPtr Parser::parseProduct() {
  static constexpr std::pair<std::string_view, BinaryOp> operators[] = {
      {"*", BinaryOp::Mul},
      {"/", BinaryOp::Div},
      {"//", BinaryOp::FloorDiv},
      {"%", BinaryOp::Mod}};
  ExprPtr left = parsePower();
  for (;;) {
    const BinaryOp *op = nullptr;
    for (const auto &[text, candidate] : operators)
      if (current().isOperator(text))
        op = &candidate;
    if (!op)
      return left;
    size_t offset = next().offset;
    left = binary(*op, std::move(left), parsePower(), offset);
  }
}

ExprPtr Parser::parsePower() {
  ExprPtr left = parseUnary(true);
  for (;;) {
    size_t offset = current().offset;
    if (!skipOperator("**"))
      return left;
    left = binary(BinaryOp::Pow, std::move(left), parseUnary(true), offset);
  }
}

ExprPtr Parser::parseUnary(bool withFilters) {
  ExprPtr expr;
  bool minus = current().isOperator("-");
  if (minus || current().isOperator("+")) {
    Nest nest(*this);
    expr = make(minus ? Expr::Kind::Neg : Expr::Kind::Pos, next().offset);
    expr->kids.push_back(parseUnary(false));
    expr = finish(std::move(expr));
  } else {
    expr = parsePrimary();
  }
  expr = parsePostfix(std::move(expr));
  return withFilters ? parseFilters(std::move(expr)) : std::move(expr);
}

ExprPtr Parser::parsePrimary() {
  size_t offset = current().offset;
  switch (current().kind) {
  case Token::Kind::Name: {
    std::string name = next().text;
    ExprPtr expr = make(Expr::Kind::Literal, offset);
    if (name == "true" || name == "True") {
      expr->literal = Value(true);
    } else if (name == "false" || name == "False") {
      expr->literal = Value(false);
    } else if (name != "none" && name != "None") {
      expr->kind = Expr::Kind::Name;
      expr->symbol = symbol(name);
      for (MacroDef *macro : macros) {
        macro->usesCaller |= name == "caller";
        macro->usesVarargs |= name == "varargs";
        macro->usesKwargs |= name == "kwargs";
      }
    }
    return expr;
  }
  case Token::Kind::String: {
    std::string text;
    while (current().kind == Token::Kind::String)
      text += next().text;
    ExprPtr expr = make(Expr::Kind::Literal, offset);
    expr->literal = makeString(nullptr, std::move(text));
    return expr;
  }
  case Token::Kind::Integer:
  case Token::Kind::Float: {
    ExprPtr expr = make(Expr::Kind::Literal, offset);
    expr->literal = next().number;
    return expr;
  }
  default:
    break;
  }
  if (skipOperator("(")) {
    ExprPtr expr = parseTuple(true, true);
    expectOperator(")");
    return expr;
  }
  if (skipOperator("[")) {
    ExprPtr expr = make(Expr::Kind::List, offset);
    while (!current().isOperator("]")) {
      if (!expr->kids.empty())
        expectOperator(",");
      if (current().isOperator("]"))
        break;
      expr->kids.push_back(parseExpression());
    }
    expectOperator("]");
    return finish(std::move(expr));
  }
  if (skipOperator("{")) {
    ExprPtr expr = make(Expr::Kind::Dict, offset);
    while (!current().isOperator("}")) {
      if (!expr->kids.empty())
        expectOperator(",");
      if (current().isOperator("}"))
        break;
      expr->kids.push_back(parseExpression());
      expectOperator(":");
      expr->kids.push_back(parseExpression());
    }
    expectOperator("}");
    return finish(std::move(expr));
  }
  unexpected("an expression");
}

bool Parser::atTupleEnd() const {
  return current().kind == Token::Kind::VariableEnd ||
         current().kind == Token::Kind::BlockEnd || current().isOperator(")");
}

ExprPtr Parser::parseTuple(bool conditional, bool parenthesised) {
  size_t offset = current().offset;
  std::vector<ExprPtr> parts;
  bool isTuple = false;
  for (;;) {
    if (!parts.empty())
      expectOperator(",");
    if (atTupleEnd())
      break;
    if (conditional) {
      parts.push_back(parseExpression());
    } else {
      Nest nest(*this);
      parts.push_back(parseOr());
    }
    if (!current().isOperator(","))
      break;
    isTuple = true;
  }
  if (!isTuple) {
    if (!parts.empty())
      return std::move(parts.front());
    if (!parenthesised)
      unexpected("an expression");
  }
  ExprPtr expr = make(Expr::Kind::Tuple, offset);
  expr->kids = std::move(parts);
  return finish(std::move(expr));
}

ExprPtr Parser::parsePostfix(ExprPtr expr) {
  for (;;) {
    if (current().isOperator(".") || current().isOperator("["))
      expr = parseSubscript(std::move(expr));
    else if (current().isOperator("("))
      expr = parseCall(std::move(expr));
    else
      return expr;
  }
}

ExprPtr Parser::parseFilters(ExprPtr expr) {
  for (;;) {
    if (skipOperator("|"))
      expr = parseFilter(std::move(expr));
    else if (current().isName("is"))
      expr = parseTest(std::move(expr));
    else if (current().isOperator("("))
      expr = parseCall(std::move(expr));
    else
      return expr;
  }
}

ExprPtr Parser::parseFilter(ExprPtr value) {
  ExprPtr expr = make(Expr::Kind::Filter, current().offset);
  std::string name = identifier();
  while (skipOperator("."))
    name += "." + identifier();
  expr->builtin = findFilter(name);
  if (!expr->builtin && conditionals == 0)
    failAt(expr->offset,
           fmt::format("no filter named '{}'", name.substr(0, 40)));
  expr->text = makeString(nullptr, std::move(name));
  // The head of a filter block has no value yet.
  if (value)
    expr->kids.push_back(std::move(value));
  expr->args =
      current().isOperator("(") ? parseArgs() : std::make_unique<ArgList>();
  return finish(std::move(expr));
}

ExprPtr Parser::parseTest(ExprPtr value) {
  size_t offset = next().offset;
  bool negated = skipName("not");
  ExprPtr expr = make(Expr::Kind::Test, current().offset);
  std::string name = identifier();
  while (skipOperator("."))
    name += "." + identifier();
  expr->builtin = findTest(name);
  if (!expr->builtin && conditionals == 0)
    failAt(expr->offset, fmt::format("no test named '{}'", name.substr(0, 40)));
  expr->text = makeString(nullptr, std::move(name));
  expr->kids.push_back(std::move(value));
  const Token &token = current();
  bool operand =
      token.kind == Token::Kind::Name || token.kind == Token::Kind::String ||
      token.kind == Token::Kind::Integer || token.kind == Token::Kind::Float ||
      token.isOperator("[") || token.isOperator("{");
  if (token.isOperator("(")) {
    expr->args = parseArgs();
  } else {
    expr->args = std::make_unique<ArgList>();
    if (token.isName("is"))
      failAt(token.offset, "tests cannot be chained with 'is'");
    if (operand && !token.isName("else") && !token.isName("or") &&
        !token.isName("and"))
      expr->args->positional.push_back(parsePostfix(parsePrimary()));
  }
  expr = finish(std::move(expr));
  if (!negated)
    return expr;
  ExprPtr inverse = make(Expr::Kind::Not, offset);
  inverse->kids.push_back(std::move(expr));
  return finish(std::move(inverse));
}

ExprPtr Parser::parseCall(ExprPtr callee) {
  ExprPtr expr = make(Expr::Kind::Call, current().offset);
  expr->kids.push_back(std::move(callee));
  expr->args = parseArgs();
  return finish(std::move(expr));
}

std::unique_ptr<ArgList> Parser::parseArgs() {
  size_t offset = current().offset;
  expectOperator("(");
  auto args = std::make_unique<ArgList>();
  auto ensure = [&](bool ok) {
    if (!ok)
      failAt(offset, "invalid order of arguments in a call");
  };
  for (bool first = true; !current().isOperator(")"); first = false) {
    if (!first) {
      expectOperator(",");
      if (current().isOperator(")"))
        break;
    }
    if (skipOperator("*")) {
      ensure(!args->star && !args->doubleStar);
      args->star = parseExpression();
    } else if (skipOperator("**")) {
      ensure(!args->doubleStar);
      args->doubleStar = parseExpression();
    } else if (current().kind == Token::Kind::Name && look().isOperator("=")) {
      ensure(!args->doubleStar);
      size_t nameOffset = current().offset;
      std::string name = next().text;
      ++at; // =
      for (const auto &[other, value] : args->named)
        if (other == name)
          failAt(nameOffset, fmt::format("keyword argument '{}' repeated",
                                         name.substr(0, 40)));
      args->named.emplace_back(std::move(name), parseExpression());
    } else {
      ensure(!args->star && !args->doubleStar && args->named.empty());
      args->positional.push_back(parseExpression());
    }
  }
  expectOperator(")");
  return args;
}

ExprPtr Parser::parseSubscript(ExprPtr value) {
  size_t offset = current().offset;
  if (skipOperator(".")) {
    if (current().kind == Token::Kind::Name) {
      ExprPtr expr = make(Expr::Kind::Attr, offset);
      expr->kids.push_back(std::move(value));
      expr->text = makeString(nullptr, next().text);
      return finish(std::move(expr));
    }
    if (current().kind != Token::Kind::Integer)
      unexpected("a name or a number");
    ExprPtr index = make(Expr::Kind::Literal, current().offset);
    index->literal = next().number;
    ExprPtr expr = make(Expr::Kind::Item, offset);
    expr->kids.push_back(std::move(value));
    expr->kids.push_back(std::move(index));
    return finish(std::move(expr));
  }
  expectOperator("[");
  ExprPtr expr = parseSubscribed(std::move(value), offset);
  expectOperator("]");
  return finish(std::move(expr));
}

ExprPtr Parser::parseSubscribed(ExprPtr value, size_t offset) {
  ExprPtr first = current().isOperator(":") ? nullptr : parseExpression();
  if (!current().isOperator(":")) {
    ExprPtr expr = make(Expr::Kind::Item, offset);
    if (current().isOperator(",")) {
      ExprPtr tuple = make(Expr::Kind::Tuple, offset);
      tuple->kids.push_back(std::move(first));
      while (skipOperator(","))
        tuple->kids.push_back(parseExpression());
      first = finish(std::move(tuple));
    }
    expr->kids.push_back(std::move(value));
    expr->kids.push_back(std::move(first));
    return expr;
  }
  ExprPtr expr = make(Expr::Kind::Slice, offset);
  expr->kids.push_back(std::move(value));
  expr->kids.push_back(std::move(first));
  for (int part = 0; part < 2; ++part) {
    bool given = skipOperator(":") && !current().isOperator(":") &&
                 !current().isOperator("]");
    expr->kids.push_back(given ? parseExpression() : nullptr);
  }
  return expr;
}

} // namespace lathe::runtime::jinja

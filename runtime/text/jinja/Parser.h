/// \file
/// Tokens to syntax tree.
#ifndef LATHE_RUNTIME_TEXT_JINJA_PARSER_H
#define LATHE_RUNTIME_TEXT_JINJA_PARSER_H

#include "runtime/text/jinja/Ast.h"
#include "runtime/text/jinja/Lexer.h"

#include <initializer_list>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lathe::runtime::jinja {

/// Recursive descent over the tokens of one template, with bounded depth.
/// Errors are Failures with an offset.
class Parser {
public:
  explicit Parser(std::vector<Token> tokens) : tokens(std::move(tokens)) {}

  /// Parses everything; symbols go to `program.names`.
  void parse(detail::Program &program);

private:
  /// One level of recursion.
  class Nest {
  public:
    explicit Nest(Parser &parser);
    ~Nest() { --parser.nesting; }

  private:
    Parser &parser;
  };

  /// Sets a member for the length of a scope.
  template <typename T> class Saved {
  public:
    Saved(T &place, T value) : place(place), old(place) { place = value; }
    ~Saved() { place = old; }

  private:
    T &place;
    T old;
  };

  using Names = std::initializer_list<std::string_view>;

  // Tokens.
  const Token &current() const { return tokens[at]; }
  const Token &look() const {
    return tokens[at + 1 < tokens.size() ? at + 1 : at];
  }
  Token next();
  bool skipName(std::string_view name);
  bool skipOperator(std::string_view op);
  void expectOperator(std::string_view op);
  void expectName(std::string_view name);
  void expectBlockEnd();
  std::string identifier();
  [[noreturn]] void failAt(size_t offset, std::string message) const;
  [[noreturn]] void unexpected(std::string_view wanted) const;
  uint32_t symbol(const std::string &name);

  // Statements (Parser.cpp).
  Body parseBody(Names ends);
  /// `%}` body `{% end`, leaving the end's name as the current token.
  Body parseBlock(Names ends);
  /// The same, and past the one name that may end it.
  Body parseBlockUntil(std::string_view end);
  std::unique_ptr<Stmt> parseStatement();
  void parseIf(Stmt &stmt);
  void parseFor(Stmt &stmt);
  void parseSet(Stmt &stmt);
  void parseMacro(Stmt &stmt);
  void parseCallBlock(Stmt &stmt);
  void parseWith(Stmt &stmt);
  void parseSignature(MacroDef &macro);
  void parseMacroBody(MacroDef &macro, std::string_view end);
  Target parseTarget(bool fields, std::string_view end);
  Target parseTargetPart(bool fields);

  // Expressions (ParserExpr.cpp).
  ExprPtr make(Expr::Kind kind, size_t offset);
  ExprPtr finish(ExprPtr expr);
  ExprPtr parseExpression();
  ExprPtr parseOr();
  ExprPtr parseAnd();
  ExprPtr parseNot();
  ExprPtr parseCompare();
  ExprPtr parseSum();
  ExprPtr parseConcat();
  ExprPtr parseProduct();
  ExprPtr parsePower();
  ExprPtr parseUnary(bool withFilters);
  ExprPtr parsePrimary();
  ExprPtr parsePostfix(ExprPtr expr);
  ExprPtr parseFilters(ExprPtr expr);
  ExprPtr parseFilter(ExprPtr expr);
  ExprPtr parseTest(ExprPtr expr);
  ExprPtr parseCall(ExprPtr expr);
  ExprPtr parseSubscript(ExprPtr expr);
  ExprPtr parseSubscribed(ExprPtr expr, size_t offset);
  ExprPtr parseTuple(bool conditional, bool parenthesised);
  bool atTupleEnd() const;
  std::unique_ptr<ArgList> parseArgs();
  ExprPtr binary(BinaryOp op, ExprPtr left, ExprPtr right, size_t offset);

  std::vector<Token> tokens;
  size_t at = 0;
  size_t nesting = 0;
  /// Inside {% if %} or a conditional expression: unknown filters are errors
  /// only when they are reached, as in jinja2.
  size_t conditionals = 0;
  bool inLoop = false;
  std::vector<MacroDef *> macros; ///< Enclosing the current token.
  std::unordered_map<std::string, uint32_t> symbols;
  std::vector<std::string> names;
};

} // namespace lathe::runtime::jinja

#endif // LATHE_RUNTIME_TEXT_JINJA_PARSER_H

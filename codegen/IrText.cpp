#include "codegen/IrText.h"

#include "runtime/support/Quote.h"

#include <algorithm>
#include <set>
#include <vector>

using namespace lathe;
using namespace lathe::codegen;
using runtime::ErrorKind;
using runtime::fail;
using runtime::Result;

namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// A character of a name behind % or ^, of a keyword or of an op's name.
bool isNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || isDigit(c) ||
         c == '_' || c == '$' || c == '.' || c == '-';
}

class IrTextChecker {
public:
  explicit IrTextChecker(std::string_view text) : text(text) {}

  Result<void> check() {
    if (text.starts_with("ML\xefR") || text.find('\0') != text.npos)
      return fail(ErrorKind::InvalidInput, "binary, expected IR as text");
    while (at < text.size()) {
      char c = text[at];
      if (c == '"') {
        skipString();
      } else if (text.substr(at, 2) == "//") {
        at = std::min(text.find('\n', at), text.size());
      } else if (c == '%') {
        if (auto known = readValue(); !known)
          return known;
      } else if (c == '^') {
        ++at;
        takeName();
        arguments = Arguments::OfBlock;
      } else if (isNameChar(c)) {
        std::string_view word = takeName();
        if (word == "func.func")
          arguments = Arguments::OfFunction;
        lastWord = word;
      } else {
        if (auto balanced = readMark(c); !balanced)
          return balanced;
        ++at;
      }
    }
    return {};
  }

private:
  using Names = std::set<std::string_view>;
  /// Whose arguments the next parenthesis holds.
  enum class Arguments { None, OfFunction, OfBlock };

  std::string_view takeName() {
    size_t begin = at;
    while (at < text.size() && isNameChar(text[at]))
      ++at;
    return text.substr(begin, at - begin);
  }

  void skipString() {
    for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
      if (text[at] == '\\')
        ++at;
    ++at;
  }

  size_t skipBlanks(size_t from) const {
    return std::min(text.find_first_not_of(" \t\r\n", from), text.size());
  }

  /// Whether the values from `from` on, separated by commas, are followed by
  /// "=": results.
  bool areResults(size_t from) const {
    while (from < text.size() && text[from] == '%') {
      ++from;
      while (from < text.size() && isNameChar(text[from]))
        ++from;
      from = skipBlanks(from);
      if (from < text.size() && text[from] == ':') {
        from = skipBlanks(from + 1);
        while (from < text.size() && isDigit(text[from]))
          ++from;
        from = skipBlanks(from);
      }
      if (from >= text.size() || text[from] != ',')
        return from < text.size() && text[from] == '=';
      from = skipBlanks(from + 1);
    }
    return false;
  }

  Result<void> readValue() {
    size_t begin = at++;
    std::string_view name = takeName();
    if (open != Arguments::None && brackets.size() == openDepth) {
      (open == Arguments::OfFunction ? nextScope : scopes.back()).insert(name);
      return {};
    }
    // Of a list of results, all but the last stand in front of a comma, as
    // operands do; only results start a line or follow results.
    size_t before = text.find_last_not_of(" \t\r", begin == 0 ? 0 : begin - 1);
    bool startsLine = begin == 0 || before == text.npos || text[before] == '\n';
    char next = skipBlanks(at) < text.size() ? text[skipBlanks(at)] : '\0';
    if ((inResults || startsLine || next == '=' || next == ':') &&
        areResults(begin)) {
      scopes.back().insert(name);
      inResults = next == ',';
      return {};
    }
    inResults = false;
    for (const Names &scope : scopes)
      if (scope.contains(name))
        return {};
    return fail(ErrorKind::InvalidInput,
                "line {}: {} is used, but not defined before",
                1 + std::count(text.begin(),
                               text.begin() + std::ptrdiff_t(begin), '\n'),
                runtime::quoted(text.substr(begin, at - begin)));
  }

  Result<void> readMark(char c) {
    if (c == '(' || c == '[' || c == '{' || c == '<') {
      bool isBody = brackets.size() == functionDepth &&
                    lastWord != "attributes" && open == Arguments::None;
      brackets.push_back(c);
      if (brackets.size() > maxIrNesting)
        return fail(ErrorKind::InvalidInput,
                    "line {}: brackets nested deeper than {}",
                    1 + std::count(text.begin(),
                                   text.begin() + std::ptrdiff_t(at), '\n'),
                    maxIrNesting);
      if (c == '(' && arguments != Arguments::None) {
        open = arguments;
        openDepth = brackets.size();
        if (open == Arguments::OfFunction)
          functionDepth = openDepth - 1;
        arguments = Arguments::None;
      }
      if (c == '{') {
        scopes.emplace_back();
        if (isBody)
          scopes.back().swap(nextScope);
      }
    } else if (c == ')' || c == ']' || c == '}' ||
               (c == '>' && (at == 0 || text[at - 1] != '-'))) {
      char opening = c == ')' ? '(' : c == ']' ? '[' : c == '}' ? '{' : '<';
      if (brackets.size() == openDepth)
        open = Arguments::None;
      // A comparison is no bracket: what it left open ends here too.
      while (c != '>' && !brackets.empty() && brackets.back() == '<')
        brackets.pop_back();
      if (!brackets.empty() && brackets.back() == opening)
        brackets.pop_back();
      if (c == '}' && scopes.size() > 1)
        scopes.pop_back();
    }
    return {};
  }

  std::string_view text;
  size_t at = 0;
  std::vector<char> brackets;
  std::vector<Names> scopes = {{}};
  /// Arguments of a function, whose body is still to come.
  Names nextScope;
  Arguments arguments = Arguments::None;
  /// What the parenthesis at depth `openDepth` holds.
  Arguments open = Arguments::None;
  size_t openDepth = 0;
  /// How many brackets the latest function's header stands in.
  size_t functionDepth = 0;
  std::string_view lastWord;
  bool inResults = false;
};

} // namespace

Result<void> codegen::checkIrText(std::string_view text) {
  return IrTextChecker(text).check();
}

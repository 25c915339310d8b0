#include "runtime/text/jinja/Lexer.h"

#include "runtime/text/jinja/Unicode.h"

#include <algorithm>
#include <charconv>

namespace lathe::runtime::jinja {

namespace {

[[noreturn]] void syntaxError(size_t offset, std::string message) {
  throw Failure{ErrorKind::InvalidInput, std::move(message), offset};
}

bool isAsciiDigit(char c) { return c >= '0' && c <= '9'; }

int hexDigit(char c) {
  if (isAsciiDigit(c))
    return c - '0';
  char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

class Lexer {
public:
  explicit Lexer(std::string_view source) : source(source) {}

  std::vector<Token> run() {
    while (at < source.size())
      root();
    push(Token::Kind::End, at);
    return std::move(tokens);
  }

private:
  Token &push(Token::Kind kind, size_t offset, std::string text = {}) {
    return tokens.emplace_back(Token{kind, offset, std::move(text), {}});
  }

  bool startsWith(size_t pos, std::string_view what) const {
    return source.substr(std::min(pos, source.size())).starts_with(what);
  }

  size_t skipSpace(size_t pos) const {
    while (pos < source.size() && isSpace(decodeAt(source, pos)))
      pos += charWidth(source, pos);
    return pos;
  }

  /// The text [begin, end) in front of a tag whose sign ('-', '+' or 0)
  /// follows; `strips` says whether lstrip_blocks applies to this tag.
  std::string_view beforeTag(size_t begin, size_t end, char sign,
                             bool strips) const {
    if (sign == '-') {
      while (end > begin) {
        size_t previous = previousChar(source, end);
        if (!isSpace(decodeAt(source, previous)))
          break;
        end = previous;
      }
    } else if (sign != '+' && strips) {
      size_t line = end;
      while (line > begin && source[line - 1] != '\n')
        --line;
      if ((line > begin || lineStarting) && skipSpace(line) >= end)
        end = line;
    }
    return source.substr(begin, end - begin);
  }

  static char signOf(char c) { return c == '-' || c == '+' ? c : '\0'; }

  /// If a tag's end (`close` with its sign) is at `pos`: past it and the
  /// whitespace it eats; otherwise 0.
  size_t tagEnd(size_t pos, std::string_view close, bool trims) const {
    if (startsWith(pos, close)) {
      pos += close.size();
      return trims && startsWith(pos, "\n") ? pos + 1 : pos;
    }
    if (startsWith(pos, "-") && startsWith(pos + 1, close))
      return skipSpace(pos + 1 + close.size());
    if (trims && startsWith(pos, "+") && startsWith(pos + 1, close))
      return pos + 1 + close.size();
    return 0;
  }

  void data(std::string_view text) {
    if (!text.empty())
      push(Token::Kind::Data, static_cast<size_t>(text.data() - source.data()),
           std::string(text));
  }

  void moveTo(size_t pos) {
    lineStarting = pos > 0 && source[pos - 1] == '\n';
    at = pos;
  }

  void root() {
    size_t open = at;
    for (;; ++open) {
      open = source.find('{', open);
      if (open == std::string_view::npos || open + 1 >= source.size()) {
        data(source.substr(at));
        at = source.size();
        return;
      }
      char second = source[open + 1];
      if (second == '%' || second == '{' || second == '#')
        break;
    }
    char kind = source[open + 1];
    char sign = open + 2 < source.size() ? signOf(source[open + 2]) : '\0';
    size_t inside = open + 2 + (sign ? 1 : 0);
    data(beforeTag(at, open, sign, kind != '{'));
    if (kind == '#')
      return comment(open, inside);
    if (kind == '{') {
      push(Token::Kind::VariableBegin, open);
      moveTo(inside);
      return code(open, "}}", Token::Kind::VariableEnd);
    }
    if (size_t body = rawBegin(inside))
      return raw(open, body);
    push(Token::Kind::BlockBegin, open);
    moveTo(inside);
    code(open, "%}", Token::Kind::BlockEnd);
  }

  void comment(size_t open, size_t pos) {
    for (; pos < source.size(); ++pos)
      if (size_t end = tagEnd(pos, "#}", true))
        return moveTo(end);
    syntaxError(open, "comment without end");
  }

  /// Past `{% raw %}` if the tag whose inside starts at `pos` is one.
  size_t rawBegin(size_t pos) const {
    pos = skipSpace(pos);
    if (!startsWith(pos, "raw"))
      return 0;
    pos = skipSpace(pos + 3);
    // Without a sign the newline behind it stays, unlike other tags'.
    if (startsWith(pos, "%}"))
      return pos + 2;
    return startsWith(pos, "-%}") ? skipSpace(pos + 3) : 0;
  }

  void raw(size_t open, size_t body) {
    moveTo(body);
    for (size_t pos = source.find("{%", body); pos != std::string_view::npos;
         pos = source.find("{%", pos + 1)) {
      char sign = pos + 2 < source.size() ? signOf(source[pos + 2]) : '\0';
      size_t word = skipSpace(pos + 2 + (sign ? 1 : 0));
      if (!startsWith(word, "endraw"))
        continue;
      size_t end = tagEnd(skipSpace(word + 6), "%}", true);
      if (!end)
        continue;
      data(beforeTag(body, pos, sign, true));
      return moveTo(end);
    }
    syntaxError(open, "{% raw %} without {% endraw %}");
  }

  /// The inside of a tag up to and with its end.
  void code(size_t open, std::string_view close, Token::Kind endKind) {
    std::string brackets;
    for (;;) {
      at = skipSpace(at);
      if (at >= source.size())
        syntaxError(open, fmt::format("tag without '{}'", close));
      if (brackets.empty())
        if (size_t end = tagEnd(at, close, endKind == Token::Kind::BlockEnd)) {
          push(endKind, at);
          return moveTo(end);
        }
      char c = source[at];
      if (isAsciiDigit(c))
        number();
      else if (c == '\'' || c == '"')
        string(c);
      else if (c == '_' || isAlnum(decodeAt(source, at)))
        name();
      else
        operation(brackets);
    }
  }

  void name() {
    size_t begin = at;
    while (at < source.size() &&
           (source[at] == '_' || isAlnum(decodeAt(source, at))))
      at += charWidth(source, at);
    push(Token::Kind::Name, begin,
         std::string(source.substr(begin, at - begin)));
  }

  void operation(std::string &brackets) {
    static constexpr std::string_view operators[] = {
        "**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (std::string_view op : operators) {
      if (!startsWith(at, op))
        continue;
      if (op == "(" || op == "[" || op == "{")
        brackets.push_back(op == "(" ? ')' : op == "[" ? ']' : '}');
      if (op == ")" || op == "]" || op == "}") {
        if (brackets.empty() || brackets.back() != op[0])
          syntaxError(at, fmt::format("unexpected '{}'", op));
        brackets.pop_back();
      }
      push(Token::Kind::Operator, at, std::string(op));
      at += op.size();
      return;
    }
    syntaxError(at, fmt::format("unexpected character '{}'",
                                source.substr(at, charWidth(source, at))));
  }

  /// Copies `digit (_? digit)*` without the underscores.
  std::string digits() {
    std::string out;
    while (at < source.size()) {
      if (isAsciiDigit(source[at]))
        out.push_back(source[at++]);
      else if (source[at] == '_' && !out.empty() && at + 1 < source.size() &&
               isAsciiDigit(source[at + 1]))
        ++at;
      else
        break;
    }
    return out;
  }

  void number() {
    size_t begin = at;
    if (source[at] == '0' && at + 1 < source.size())
      for (auto [letter, base] :
           {std::pair{'b', 2}, std::pair{'o', 8}, std::pair{'x', 16}})
        if ((source[at + 1] | 0x20) == letter && basedNumber(base))
          return;
    bool afterDot = begin > 0 && source[begin - 1] == '.';
    std::string text = digits();
    size_t plainEnd = at;
    bool real = false;
    if (!afterDot) {
      if (at + 1 < source.size() && source[at] == '.' &&
          isAsciiDigit(source[at + 1])) {
        ++at;
        text += "." + digits();
        real = true;
      }
      if (at < source.size() && (source[at] | 0x20) == 'e') {
        size_t exponent = at;
        std::string sign;
        ++at;
        if (at < source.size() && (source[at] == '+' || source[at] == '-'))
          sign = source[at++];
        std::string value = digits();
        if (value.empty()) {
          at = exponent;
        } else {
          text += "e" + sign + value;
          real = true;
        }
      }
    }
    if (real) {
      double value = 0;
      auto result =
          std::from_chars(text.data(), text.data() + text.size(), value);
      if (result.ec == std::errc::result_out_of_range)
        value = std::strtod(text.c_str(), nullptr);
      push(Token::Kind::Float, begin).number = Value(value);
      return;
    }
    // A leading zero is a number of its own, and then a syntax error.
    if (text.size() > 1 && text[0] == '0' &&
        text.find_first_not_of('0') != std::string::npos)
      syntaxError(begin, "a decimal number cannot start with 0");
    at = plainEnd;
    pushInteger(begin, text, 10);
  }

  bool basedNumber(int base) {
    size_t pos = at + 2;
    std::string text;
    for (; pos < source.size(); ++pos) {
      if (source[pos] == '_' && pos + 1 < source.size())
        ++pos;
      int digit = hexDigit(source[pos]);
      if (digit < 0 || digit >= base)
        break;
      text.push_back(source[pos]);
    }
    if (text.empty())
      return false;
    size_t begin = at;
    at = pos;
    pushInteger(begin, text, base);
    return true;
  }

  void pushInteger(size_t offset, std::string_view text, int base) {
    Int value = 0;
    for (char c : text) {
      value = value * base + hexDigit(c);
      if (value > Int{1} << 100)
        syntaxError(offset, "integer too large");
    }
    push(Token::Kind::Integer, offset).number = Value(value);
  }

  void string(char quote) {
    size_t begin = at++;
    std::string out;
    for (;;) {
      if (at >= source.size())
        syntaxError(begin, "string without end");
      char c = source[at++];
      if (c == quote)
        break;
      if (c != '\\')
        out.push_back(c);
      else if (at >= source.size())
        syntaxError(begin, "string without end");
      else
        escape(out);
    }
    push(Token::Kind::String, begin, std::move(out));
  }

  void escape(std::string &out) {
    size_t begin = at - 1;
    char c = source[at++];
    static constexpr std::string_view letters = "abfnrtv\\'\"";
    static constexpr std::string_view meanings = "\a\b\f\n\r\t\v\\'\"";
    if (size_t i = letters.find(c); i != std::string_view::npos) {
      out.push_back(meanings[i]);
    } else if (c == '\n') {
      return;
    } else if (c >= '0' && c <= '7') {
      char32_t value = static_cast<char32_t>(c - '0');
      for (int i = 0; i < 2 && at < source.size() && source[at] >= '0' &&
                      source[at] <= '7';
           ++i)
        value = value * 8 + static_cast<char32_t>(source[at++] - '0');
      appendUtf8(out, value);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      char32_t value = 0;
      for (int i = c == 'x' ? 2 : c == 'u' ? 4 : 8; i > 0; --i) {
        int digit = at < source.size() ? hexDigit(source[at]) : -1;
        if (digit < 0)
          syntaxError(begin, "truncated escape in a string");
        value = value * 16 + static_cast<char32_t>(digit);
        ++at;
      }
      if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
        syntaxError(begin, "escape is not a character");
      appendUtf8(out, value);
    } else if (c == 'N') {
      syntaxError(begin, "named characters in strings are not supported");
    } else {
      out.push_back('\\');
      out.push_back(c);
    }
  }

  std::string_view source;
  size_t at = 0;
  bool lineStarting = true;
  std::vector<Token> tokens;
};

} // namespace

std::string normalizeNewlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n')
        ++i;
    } else {
      out.push_back(source[i]);
    }
  }
  if (!out.empty() && out.back() == '\n')
    out.pop_back();
  return out;
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

} // namespace lathe::runtime::jinja

/// \file
/// Template text to tokens, with Jinja's whitespace control as Hugging Face
/// sets it: trim_blocks, lstrip_blocks, no trailing newline kept.
#ifndef LATHE_RUNTIME_TEXT_JINJA_LEXER_H
#define LATHE_RUNTIME_TEXT_JINJA_LEXER_H

#include "runtime/text/jinja/Value.h"

#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime::jinja {

struct Token {
  enum class Kind {
    Data, ///< Template text, in `text`.
    BlockBegin,
    BlockEnd,
    VariableBegin,
    VariableEnd,
    Name,
    String,  ///< Decoded, in `text`.
    Integer, ///< In `number`.
    Float,   ///< In `number`.
    Operator,
    End,
  };

  Kind kind;
  size_t offset; ///< Byte in the source.
  std::string text;
  Value number;

  bool isName(std::string_view name) const {
    return kind == Kind::Name && text == name;
  }
  bool isOperator(std::string_view op) const {
    return kind == Kind::Operator && text == op;
  }
};

/// CRLF and CR become LF; one newline at the very end goes.
std::string normalizeNewlines(std::string_view source);

/// The tokens of a normalised source, an End last. Throws Failure with the
/// offset of what is wrong.
std::vector<Token> tokenize(std::string_view source);

} // namespace lathe::runtime::jinja

#endif // LATHE_RUNTIME_TEXT_JINJA_LEXER_H

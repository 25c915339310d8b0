// Filters that make strings.
#include "runtime/text/jinja/Interpreter.h"
#include "runtime/text/jinja/TextOps.h"

namespace lathe::runtime::jinja {

namespace {

/// The piped value as a string, as jinja2's soft_str.
Value soft(Interpreter &in, const Value &value) {
  return toStr(in.budget(), value);
}

Value filterUpper(Interpreter &in, const Value &self, Args &args) {
  Bound bound("upper", args, {});
  return changeCase(in.budget(), soft(in, self).text(), Case::Upper);
}

Value filterLower(Interpreter &in, const Value &self, Args &args) {
  Bound bound("lower", args, {});
  return changeCase(in.budget(), soft(in, self).text(), Case::Lower);
}

Value filterCapitalize(Interpreter &in, const Value &self, Args &args) {
  Bound bound("capitalize", args, {});
  return capitalize(in.budget(), soft(in, self).text());
}

/// Unlike str.title, only these separate words: whitespace and -({[<.
Value filterTitle(Interpreter &in, const Value &self, Args &args) {
  Bound bound("title", args, {});
  Value value = soft(in, self);
  const std::string &bytes = value.text().bytes();
  enum { Start, Separator, Word } state = Start;
  size_t rest = 0; // Behind the piece's first character.
  return mapChars(
      in.budget(), value.text(), [&](std::string &out, char32_t c, size_t at) {
        bool separates = isSpace(c) || c == '-' || c == '(' || c == '{' ||
                         c == '[' || c == '<';
        auto now = separates ? Separator : Word;
        if (now != state) {
          appendCased(out, c, Case::Upper);
          rest = at + charWidth(bytes, at);
        } else {
          // jinja2 lowers the rest as a string of its own.
          appendLower(out, std::string_view(bytes).substr(rest), c, at - rest);
        }
        state = now;
      });
}

Value filterTrim(Interpreter &in, const Value &self, Args &args) {
  Bound bound("trim", args, {"chars"});
  Value value = soft(in, self);
  const Value *chars = bound.optional(0);
  if (chars && !chars->isString())
    raise("strip arg must be None or str");
  const std::string &bytes = value.text().bytes();
  in.budget().touch(bytes.size());
  auto [begin, end] =
      stripSpan(bytes, chars ? &chars->text().bytes() : nullptr, true, true);
  return makeString(&in.budget(), value.text().slice(begin, end));
}

Value filterReplace(Interpreter &in, const Value &self, Args &args) {
  Bound bound("replace", args, {"old", "new", "count"}, 2);
  Int count = bound.optional(2) ? bound.integer(2, -1) : -1;
  return replaceText(in.budget(), soft(in, self).text(),
                     soft(in, *bound[0]).text(), soft(in, *bound[1]).text(),
                     count);
}

Value filterIndent(Interpreter &in, const Value &self, Args &args) {
  Bound bound("indent", args, {"width", "first", "blank"});
  if (!self.isString())
    raise("indent needs a string, not '{}'", typeName(self));
  Builder margin(in.budget());
  if (bound[0] && bound[0]->isString())
    margin.add(bound[0]->text());
  else
    for (Int width = bound.integer(0, 4); width > 0; --width) {
      in.budget().step();
      margin.add(" ");
    }
  Value marginValue = margin.take();
  const Text &indent = marginValue.text();
  const Text &text = self.text();
  in.budget().step(text.size() / 8);
  std::string padded = text.bytes() + "\n";
  Builder out(in.budget());
  if (bound.flag(1, false))
    out.add(indent);
  bool blank = bound.flag(2, false), firstLine = true;
  for (auto [begin, end] : lineSpans(padded, false)) {
    if (!firstLine) {
      out.add("\n");
      if (begin < end || blank)
        out.add(indent);
    }
    firstLine = false;
    out.add(text, begin, end);
  }
  return out.take();
}

Value filterString(Interpreter &in, const Value &self, Args &args) {
  Bound bound("string", args, {});
  return soft(in, self);
}

Value filterEscape(Interpreter &in, const Value &self, Args &args) {
  Bound bound("escape", args, {});
  return mapChars(in.budget(), soft(in, self).text(),
                  [](std::string &out, char32_t c, size_t) {
                    switch (c) {
                    case '&':
                      out += "&amp;";
                      break;
                    case '<':
                      out += "&lt;";
                      break;
                    case '>':
                      out += "&gt;";
                      break;
                    case '\'':
                      out += "&#39;";
                      break;
                    case '"':
                      out += "&#34;";
                      break;
                    default:
                      appendUtf8(out, c);
                    }
                  });
}

Value filterFormat(Interpreter &in, const Value &self, Args &args) {
  Value format = soft(in, self);
  if (!args.named.empty() && !args.positional.empty())
    raise("can't handle positional and keyword arguments at the same time");
  if (args.named.empty())
    return formatPercent(
        in.budget(), format.text(),
        makeSeq(in.budget(), SeqKind::Tuple, std::move(args.positional)));
  std::vector<std::pair<Value, Value>> entries;
  for (auto &[name, value] : args.named)
    entries.emplace_back(in.string(name), value);
  return formatPercent(in.budget(), format.text(),
                       makeDict(in.budget(), std::move(entries)));
}

Value filterWordcount(Interpreter &in, const Value &self, Args &args) {
  Bound bound("wordcount", args, {});
  Value value = soft(in, self);
  const std::string &bytes = value.text().bytes();
  in.budget().step(bytes.size() / 8);
  Int words = 0;
  bool inWord = false;
  for (size_t at = 0; at < bytes.size(); at += charWidth(bytes, at)) {
    char32_t c = decodeAt(bytes, at);
    bool isWord = c == '_' || isAlnum(c);
    words += isWord && !inWord;
    inWord = isWord;
  }
  return Value(words);
}

Value filterJoin(Interpreter &in, const Value &self, Args &args) {
  Bound bound("join", args, {"d", "attribute"});
  Values items = in.iterate(self);
  if (const Value *attribute = bound.optional(1))
    for (Value &item : items)
      item = in.path(item, *attribute, nullptr);
  Value separator = bound[0] ? soft(in, *bound[0]) : in.string("");
  return joinText(in.budget(), separator.text(), items, true);
}

constexpr Builtin table[] = {
    {"upper", filterUpper},
    {"lower", filterLower},
    {"capitalize", filterCapitalize},
    {"title", filterTitle},
    {"trim", filterTrim},
    {"replace", filterReplace},
    {"indent", filterIndent},
    {"string", filterString},
    {"safe", filterString},
    {"escape", filterEscape},
    {"e", filterEscape},
    {"forceescape", filterEscape},
    {"format", filterFormat},
    {"wordcount", filterWordcount},
    {"join", filterJoin},
    {"tojson", filterToJson},
};

} // namespace

BuiltinTable textFilters() { return {table, std::size(table)}; }

} // namespace lathe::runtime::jinja

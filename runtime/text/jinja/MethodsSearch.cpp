// str methods that look into strings or cut them.
#include "runtime/text/jinja/Interpreter.h"
#include "runtime/text/jinja/TextOps.h"

#include <algorithm>

namespace lathe::runtime::jinja {

namespace {

const Text &needText(const Value &value, std::string_view what) {
  requireDefined(value);
  if (!value.isString())
    raise("{} must be str, not {}", what, typeName(value));
  return value.text();
}

Value part(Interpreter &in, const Text &text, Span span) {
  return makeString(&in.budget(), text.slice(span.first, span.second));
}

/// The byte of character `index`, which is at most the string's length.
size_t byteOf(std::string_view bytes, Int index) {
  size_t at = 0;
  for (; index > 0; --index)
    at += charWidth(bytes, at);
  return at;
}

/// Byte range of the optional character arguments `first` and `first` + 1;
/// false if nothing can be found there, not even the empty string.
bool charRange(Interpreter &in, const Text &text, const Bound &bound,
               size_t first, Span &span) {
  const std::string &bytes = text.bytes();
  in.budget().touch(bytes.size());
  auto count = static_cast<Int>(countChars(bytes));
  auto clamp = [&](Int i) { return i < 0 ? std::max<Int>(i + count, 0) : i; };
  Int from = clamp(bound.optional(first) ? bound.integer(first, 0) : 0);
  Int to =
      clamp(bound.optional(first + 1) ? bound.integer(first + 1, 0) : count);
  to = std::min(to, count);
  if (from > to)
    return false;
  span = {byteOf(bytes, from), byteOf(bytes, to)};
  return true;
}

Value find(Interpreter &in, const Value &self, Args &args, bool last,
           bool mustExist) {
  Bound bound("find", args, {"sub", "start", "end"}, 1);
  const Text &sub = needText(*bound[0], "argument");
  const std::string &bytes = self.text().bytes();
  size_t at = std::string::npos;
  Span span;
  if (charRange(in, self.text(), bound, 1, span))
    at = last ? findLastBytes(in.budget(), bytes, sub.bytes(), span.first,
                              span.second)
              : findBytes(bytes, sub.bytes(), span.first, span.second);
  if (at != std::string::npos)
    return Value(
        static_cast<Int>(countChars(std::string_view(bytes).substr(0, at))));
  if (mustExist)
    raise("substring not found");
  return Value(-1);
}

Value strFind(Interpreter &in, const Value &self, Args &args) {
  return find(in, self, args, false, false);
}
Value strRfind(Interpreter &in, const Value &self, Args &args) {
  return find(in, self, args, true, false);
}
Value strIndex(Interpreter &in, const Value &self, Args &args) {
  return find(in, self, args, false, true);
}
Value strRindex(Interpreter &in, const Value &self, Args &args) {
  return find(in, self, args, true, true);
}

Value strCount(Interpreter &in, const Value &self, Args &args) {
  Bound bound("count", args, {"sub", "start", "end"}, 1);
  const Text &sub = needText(*bound[0], "argument");
  const std::string &bytes = self.text().bytes();
  Span span;
  if (!charRange(in, self.text(), bound, 1, span))
    return Value(0);
  if (sub.empty())
    return Value(static_cast<Int>(countChars(std::string_view(bytes).substr(
                     span.first, span.second - span.first))) +
                 1);
  Int count = 0;
  for (size_t at = span.first;; ++count) {
    in.budget().step();
    at = findBytes(bytes, sub.bytes(), at, span.second);
    if (at == std::string::npos)
      return Value(count);
    at += sub.size();
  }
}

Value affix(Interpreter &in, const Value &self, Args &args, bool ends) {
  Bound bound(ends ? "endswith" : "startswith", args,
              {"prefix", "start", "end"}, 1);
  Span span;
  if (!charRange(in, self.text(), bound, 1, span))
    return Value(false);
  std::string_view bytes = std::string_view(self.text().bytes())
                               .substr(span.first, span.second - span.first);
  auto matches = [&](const Value &value) {
    const std::string &text = needText(value, "affix").bytes();
    return ends ? bytes.ends_with(text) : bytes.starts_with(text);
  };
  const SeqBox *choices = bound[0]->seq();
  if (!choices || !choices->isTuple())
    return Value(matches(*bound[0]));
  in.budget().step(choices->items.size());
  return Value(
      std::any_of(choices->items.begin(), choices->items.end(), matches));
}

Value strStartswith(Interpreter &in, const Value &self, Args &args) {
  return affix(in, self, args, false);
}
Value strEndswith(Interpreter &in, const Value &self, Args &args) {
  return affix(in, self, args, true);
}

Value removeAffix(Interpreter &in, const Value &self, Args &args, bool end) {
  Bound bound("removeprefix", args, {"affix"}, 1);
  const std::string &text = needText(*bound[0], "argument").bytes();
  const std::string &bytes = self.text().bytes();
  if (text.empty() || !(end ? bytes.ends_with(text) : bytes.starts_with(text)))
    return self;
  return part(in, self.text(),
              end ? Span{0, bytes.size() - text.size()}
                  : Span{text.size(), bytes.size()});
}

Value strRemoveprefix(Interpreter &in, const Value &self, Args &args) {
  return removeAffix(in, self, args, false);
}
Value strRemovesuffix(Interpreter &in, const Value &self, Args &args) {
  return removeAffix(in, self, args, true);
}

Value strip(Interpreter &in, const Value &self, Args &args, bool left,
            bool right) {
  Bound bound("strip", args, {"chars"});
  const std::string *chars = nullptr;
  if (const Value *given = bound.optional(0))
    chars = &needText(*given, "strip arg").bytes();
  // Each character is looked up among `chars`.
  in.budget().step(self.text().size() / 64 *
                   (1 + (chars ? chars->size() / 64 : 0)));
  return part(in, self.text(),
              stripSpan(self.text().bytes(), chars, left, right));
}

Value strStrip(Interpreter &in, const Value &self, Args &args) {
  return strip(in, self, args, true, true);
}
Value strLstrip(Interpreter &in, const Value &self, Args &args) {
  return strip(in, self, args, true, false);
}
Value strRstrip(Interpreter &in, const Value &self, Args &args) {
  return strip(in, self, args, false, true);
}

std::vector<Span> splitAtSpace(std::string_view bytes, Int limit) {
  std::vector<Span> spans;
  size_t at = 0;
  for (;;) {
    at = stripSpan(bytes.substr(at), nullptr, true, false).first + at;
    if (at == bytes.size())
      return spans;
    if (limit-- == 0) {
      spans.emplace_back(at, bytes.size());
      return spans;
    }
    size_t end = at;
    while (end < bytes.size() && !isSpace(decodeAt(bytes, end)))
      end += charWidth(bytes, end);
    spans.emplace_back(at, end);
    at = end;
  }
}

std::vector<Span> splitAtSpaceBackwards(std::string_view bytes, Int limit) {
  std::vector<Span> spans;
  size_t end = bytes.size();
  for (;;) {
    end = stripSpan(bytes.substr(0, end), nullptr, false, true).second;
    if (end == 0)
      break;
    if (limit-- == 0) {
      spans.emplace_back(0, end);
      break;
    }
    size_t at = end;
    while (at > 0 && !isSpace(decodeAt(bytes, previousChar(bytes, at))))
      at = previousChar(bytes, at);
    spans.emplace_back(at, end);
    end = at;
  }
  std::reverse(spans.begin(), spans.end());
  return spans;
}

Value split(Interpreter &in, const Value &self, Args &args, bool backwards) {
  Bound bound("split", args, {"sep", "maxsplit"});
  Int limit = bound.integer(1, -1);
  const std::string &bytes = self.text().bytes();
  in.budget().step(bytes.size() / 16);
  std::vector<Span> spans;
  if (!bound.optional(0)) {
    spans = backwards ? splitAtSpaceBackwards(bytes, limit)
                      : splitAtSpace(bytes, limit);
  } else {
    const std::string &sep = needText(*bound[0], "separator").bytes();
    if (sep.empty())
      raise("empty separator");
    size_t at = 0, end = bytes.size();
    for (; limit != 0; --limit) {
      in.budget().step();
      size_t hit = backwards ? findLastBytes(in.budget(), bytes, sep, 0, end)
                             : findBytes(bytes, sep, at, end);
      if (hit == std::string::npos)
        break;
      if (backwards) {
        spans.emplace_back(hit + sep.size(), end);
        end = hit;
      } else {
        spans.emplace_back(at, hit);
        at = hit + sep.size();
      }
    }
    spans.emplace_back(at, end);
    if (backwards)
      std::reverse(spans.begin(), spans.end());
  }
  Values parts;
  for (Span span : spans)
    parts.push_back(part(in, self.text(), span));
  return in.list(std::move(parts));
}

Value strSplit(Interpreter &in, const Value &self, Args &args) {
  return split(in, self, args, false);
}
Value strRsplit(Interpreter &in, const Value &self, Args &args) {
  return split(in, self, args, true);
}

Value strSplitlines(Interpreter &in, const Value &self, Args &args) {
  Bound bound("splitlines", args, {"keepends"});
  in.budget().step(self.text().size() / 16);
  Values lines;
  for (Span span : lineSpans(self.text().bytes(), bound.flag(0, false)))
    lines.push_back(part(in, self.text(), span));
  return in.list(std::move(lines));
}

Value partition(Interpreter &in, const Value &self, Args &args, bool last) {
  Bound bound("partition", args, {"sep"}, 1);
  const std::string &sep = needText(*bound[0], "separator").bytes();
  if (sep.empty())
    raise("empty separator");
  const Text &text = self.text();
  in.budget().touch(text.size());
  size_t hit =
      last ? findLastBytes(in.budget(), text.bytes(), sep, 0, text.size())
           : findBytes(text.bytes(), sep, 0, text.size());
  Values parts;
  if (hit == std::string::npos) {
    Value empty = in.string("");
    parts = last ? Values{empty, empty, self} : Values{self, empty, empty};
  } else {
    parts = {part(in, text, {0, hit}), *bound[0],
             part(in, text, {hit + sep.size(), text.size()})};
  }
  return makeSeq(in.budget(), SeqKind::Tuple, std::move(parts));
}

Value strPartition(Interpreter &in, const Value &self, Args &args) {
  return partition(in, self, args, false);
}
Value strRpartition(Interpreter &in, const Value &self, Args &args) {
  return partition(in, self, args, true);
}

constexpr Builtin table[] = {
    {"find", strFind},
    {"rfind", strRfind},
    {"index", strIndex},
    {"rindex", strRindex},
    {"count", strCount},
    {"startswith", strStartswith},
    {"endswith", strEndswith},
    {"removeprefix", strRemoveprefix},
    {"removesuffix", strRemovesuffix},
    {"strip", strStrip},
    {"lstrip", strLstrip},
    {"rstrip", strRstrip},
    {"split", strSplit},
    {"rsplit", strRsplit},
    {"splitlines", strSplitlines},
    {"partition", strPartition},
    {"rpartition", strRpartition},
};

} // namespace

BuiltinTable stringSearchMethods() { return {table, std::size(table)}; }

} // namespace lathe::runtime::jinja

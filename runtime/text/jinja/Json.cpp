// `tojson`, and the context's JSON.
#include "runtime/text/jinja/Interpreter.h"
#include "runtime/text/jinja/StableSort.h"
#include "runtime/text/jinja/Unicode.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lathe::runtime::jinja {

namespace {

/// json.dumps.
class JsonWriter {
public:
  JsonWriter(Builder &out) : out(out) {}

  bool ensureAscii = false, sortKeys = false, indents = false;
  Text indent;
  Text itemSeparator{", ", true}, keySeparator{": ", true};

  void write(const Value &value, size_t level) {
    out.budget().step();
    if (value.isString())
      return string(value.text());
    if (const SeqBox *seq = value.seq();
        seq && (seq->kind == SeqKind::List || seq->isTuple()))
      return list(seq->items, level);
    if (value.isDict())
      return dict(*value.dict(), level);
    if (!scalar(value))
      raise("Object of type {} is not JSON serializable", typeName(value));
  }

private:
  bool scalar(const Value &value) {
    if (value.isNone())
      out.add("null");
    else if (const bool *b = value.boolean())
      out.add(*b ? "true" : "false");
    else if (const double *d = value.real())
      out.add(std::isnan(*d)   ? "NaN"
              : std::isinf(*d) ? (*d < 0 ? "-Infinity" : "Infinity")
                               : reprReal(*d));
    else if (value.integer())
      appendStr(out, value);
    else
      return false;
    return true;
  }

  void newline(size_t level) {
    if (!indents)
      return;
    out.add("\n");
    for (; level > 0; --level)
      out.add(indent);
  }

  void list(const Values &items, size_t level) {
    if (items.empty())
      return out.add("[]");
    out.add("[");
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0)
        out.add(itemSeparator);
      newline(level + 1);
      write(items[i], level + 1);
    }
    newline(level);
    out.add("]");
  }

  void dict(const DictBox &dict, size_t level) {
    if (dict.entries.empty())
      return out.add("{}");
    const auto &entries = dict.entries;
    std::vector<size_t> order(entries.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (sortKeys)
      order = stableOrder(entries.size(), [&](size_t a, size_t b) {
        return lessThan(out.budget(), entries[a].first, entries[b].first);
      });
    out.add("{");
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0)
        out.add(itemSeparator);
      newline(level + 1);
      key(entries[order[i]].first);
      out.add(keySeparator);
      write(entries[order[i]].second, level + 1);
    }
    newline(level);
    out.add("}");
  }

  void key(const Value &value) {
    if (value.isString())
      return string(value.text());
    out.add("\"");
    if (!scalar(value))
      raise("keys must be str, int, float, bool or None, not {}",
            typeName(value));
    out.add("\"");
  }

  std::string escape(char32_t c) const {
    switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\f':
      return "\\f";
    case '\b':
      return "\\b";
    default:
      break;
    }
    if (c < 0x20 || (ensureAscii && c > 0x7E && c < 0x10000))
      return fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    if (ensureAscii && c >= 0x10000) {
      uint32_t rest = c - 0x10000;
      return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10),
                         0xDC00 + (rest & 0x3FF));
    }
    return {};
  }

  void string(const Text &text) {
    const std::string &bytes = text.bytes();
    out.budget().step(bytes.size() / 16);
    out.add("\"");
    size_t plain = 0;
    for (size_t at = 0; at < bytes.size();) {
      size_t width = charWidth(bytes, at);
      if (std::string escaped = escape(decodeAt(bytes, at)); !escaped.empty()) {
        out.add(text, plain, at);
        out.add(escaped, text.trustedAt(at));
        plain = at + width;
      }
      at += width;
    }
    out.add(text, plain, bytes.size());
    out.add("\"");
  }

  Builder &out;
};

} // namespace

Value filterToJson(Interpreter &in, const Value &self, Args &args) {
  Bound bound("tojson", args,
              {"ensure_ascii", "indent", "separators", "sort_keys"});
  Builder out(in.budget());
  JsonWriter writer(out);
  writer.ensureAscii = bound.flag(0, false);
  writer.sortKeys = bound.flag(3, false);
  if (const Value *indent = bound.optional(1)) {
    writer.indents = true;
    writer.itemSeparator = Text(",", true);
    if (indent->isString()) {
      writer.indent = indent->text();
    } else {
      Int width = bound.integer(1, 0);
      if (width > 1000)
        raise("an indent of more than 1000 is not supported");
      writer.indent = Text(
          std::string(static_cast<size_t>(std::max<Int>(width, 0)), ' '), true);
    }
  }
  if (const Value *separators = bound.optional(2)) {
    Values parts = in.iterate(*separators);
    if (parts.size() != 2 || !parts[0].isString() || !parts[1].isString())
      raise("separators must be two strings");
    writer.itemSeparator = parts[0].text();
    writer.keySeparator = parts[1].text();
  }
  writer.write(self, 0);
  return out.take();
}

Value ContextReader::read(const std::string &name,
                          const nlohmann::ordered_json &json) {
  bool trusted =
      std::find(options.trustedNames.begin(), options.trustedNames.end(),
                name) != options.trustedNames.end();
  return convert(json,
                 trusted              ? Place::Trusted
                 : name == "messages" ? Place::Messages
                                      : Place::Other,
                 0);
}

Value ContextReader::text(const std::string &bytes, bool trusted) {
  meter.touch(bytes.size());
  if (auto at = findInvalidUtf8(bytes))
    throw Failure{ErrorKind::InvalidInput,
                  fmt::format("the chat request holds a string that is not "
                              "UTF-8 (at its byte {})",
                              *at),
                  Failure::nowhere, true};
  return makeString(&meter, bytes, trusted);
}

Value ContextReader::convert(const nlohmann::ordered_json &json, Place place,
                             size_t depth) {
  // Templates build markers like '<|user|>' from these.
  static constexpr std::string_view roles[] = {
      "system",         "developer", "user",        "assistant",
      "tool",           "model",     "function",    "ipython",
      "context",        "documents", "environment", "tool_response",
      "available_tools"};
  meter.step();
  if (depth > maxValueDepth)
    throw Failure{ErrorKind::InvalidInput,
                  fmt::format("the chat request nests deeper than {} levels",
                              maxValueDepth),
                  Failure::nowhere, true};
  bool trusted = place == Place::Trusted;
  Place inside = trusted ? Place::Trusted : Place::Other;
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
  case Type::boolean:
    return Value(json.get<bool>());
  case Type::number_integer:
    return Value(static_cast<Int>(json.get<int64_t>()));
  case Type::number_unsigned:
    return Value(static_cast<Int>(json.get<uint64_t>()));
  case Type::number_float:
    return Value(json.get<double>());
  case Type::string:
    return text(json.get_ref<const std::string &>(), trusted);
  case Type::array: {
    Values items;
    items.reserve(json.size());
    for (const auto &item : json)
      items.push_back(convert(
          item, place == Place::Messages ? Place::Message : inside, depth + 1));
    return makeSeq(meter, SeqKind::List, std::move(items));
  }
  case Type::object: {
    std::vector<std::pair<Value, Value>> entries;
    entries.reserve(json.size());
    for (const auto &[key, value] : json.items()) {
      bool role =
          place == Place::Message && key == "role" && value.is_string() &&
          std::find(std::begin(roles), std::end(roles),
                    value.get_ref<const std::string &>()) != std::end(roles);
      entries.emplace_back(
          text(key, trusted),
          convert(value, role ? Place::Trusted : inside, depth + 1));
    }
    return makeDict(meter, std::move(entries));
  }
  default:
    return Value();
  }
}

} // namespace lathe::runtime::jinja

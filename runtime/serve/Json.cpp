#include "runtime/serve/Json.h"
#include "runtime/support/Quote.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace lathe::runtime::serve {

using nlohmann::json;

namespace {

/// Leaves the parser; caught in readJson().
struct Refused {
  std::string why;
};

/// Sees the parser's events.
class Limits {
public:
  bool operator()(int depth, json::parse_event_t event, json &parsed) {
    if (++events > 2 * u64(jsonValuesMax))
      throw Refused{fmt::format("has more than {} values", jsonValuesMax)};
    switch (event) {
    case json::parse_event_t::object_start:
      keys.emplace_back();
      [[fallthrough]];
    case json::parse_event_t::array_start:
      if (depth >= jsonDepthMax)
        throw Refused{
            fmt::format("is nested deeper than {} levels", jsonDepthMax)};
      break;
    case json::parse_event_t::key: {
      const auto &key = parsed.get_ref<const std::string &>();
      if (!keys.back().insert(key).second)
        throw Refused{
            fmt::format("has the key {} twice", runtime::quoted(key))};
      break;
    }
    case json::parse_event_t::object_end:
      keys.pop_back();
      break;
    default:
      break;
    }
    return true;
  }

private:
  u64 events = 0;                          ///< Each array and object makes two.
  std::vector<std::set<std::string>> keys; ///< Of the open objects.
};

/// What nlohmann says, without its own name and numbers.
std::string plainReason(const json::parse_error &error) {
  std::string_view text = error.what();
  if (auto at = text.find("] "); at != text.npos)
    text.remove_prefix(at + 2);
  // "; last read: '...'" shows the body, perhaps not as UTF-8.
  if (auto at = text.find("; last read"); at != text.npos)
    text = text.substr(0, at);
  return runtime::quoted(text, 200);
}

} // namespace

Result<json> readJson(std::string_view body) {
  json parsed;
  try {
    Limits limits;
    parsed =
        json::parse(body.begin(), body.end(),
                    [&](int depth, json::parse_event_t event, json &value) {
                      return limits(depth, event, value);
                    });
  } catch (const Refused &refused) {
    return fail(ErrorKind::InvalidInput, "the JSON body {}", refused.why);
  } catch (const json::parse_error &error) {
    return fail(ErrorKind::InvalidInput, "the body is not valid JSON: {}",
                plainReason(error));
  } catch (const json::exception &error) {
    return fail(ErrorKind::InvalidInput,
                "the body has a number that is out of range");
  }
  if (!parsed.is_object())
    return fail(ErrorKind::InvalidInput, "the body must be a JSON object");
  return parsed;
}

void appendEscaped(std::string &out, std::string_view text) {
  auto isPlain = [](char c) { return u8(c) >= 0x20 && c != '"' && c != '\\'; };
  while (!text.empty()) {
    auto stop = std::ranges::find_if_not(text, isPlain);
    size_t plain = size_t(stop - text.begin());
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty())
      break;
    char c = text.front();
    text.remove_prefix(1);
    switch (c) {
    case '"':
    case '\\':
      out += {'\\', c};
      break;
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\r':
      out += "\\r";
      break;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", u8(c));
    }
  }
}

void appendString(std::string &out, std::string_view text) {
  out += '"';
  appendEscaped(out, text);
  out += '"';
}

void appendLogProb(std::string &out, f64 value) {
  fmt::format_to(std::back_inserter(out), "{}", std::max(value, -9999.0));
}

} // namespace lathe::runtime::serve

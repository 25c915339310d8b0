/// \file
/// Tables of the parameters that an endpoint knows: each name with how its
/// value is read, or why it is refused.
#ifndef LATHE_RUNTIME_SERVE_PARAMETERS_H
#define LATHE_RUNTIME_SERVE_PARAMETERS_H

#include "runtime/serve/ApiError.h"
#include "runtime/support/Quote.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime::serve {

using nlohmann::json;

/// Why a value is not taken: what follows the parameter's name. Nothing: it is.
using Complaint = std::optional<std::string>;

/// One line of a table. null always means the same as leaving it out.
template <typename Target> struct Parameter {
  std::string_view name;
  std::function<Complaint(const json &value, Target &target)> read;
  /// Known, but only with the value that does nothing.
  bool isRefused = false;
};

/// Reads an object by a table. `where` is put in front of names in errors.
template <typename Target>
ApiResult<void> readParameters(const json &object,
                               std::span<const Parameter<Target>> table,
                               Target &target, const std::string &where = {}) {
  for (const auto &[key, value] : object.items()) {
    auto line = std::ranges::find(table, key, &Parameter<Target>::name);
    std::string name = where + key;
    if (name.size() > 100)
      return refuse({},
                    fmt::format("unknown parameter {}", runtime::quoted(name)),
                    "unknown_parameter");
    if (line == table.end())
      return refuse(name,
                    fmt::format("unknown parameter {}", runtime::quoted(name)),
                    "unknown_parameter");
    if (value.is_null())
      continue;
    if (Complaint complaint = line->read(value, target))
      return refuse(
          name, fmt::format("{} {}", runtime::quoted(name), *complaint),
          line->isRefused ? "unsupported_parameter" : "invalid_value");
  }
  return {};
}

/// The readers below assign to a field of the target: a pointer to member, or
/// one of a member (inside()).
template <typename Outer, typename Inner>
auto inside(Outer outer, Inner inner) {
  return [=](auto &target) -> auto & {
    return std::invoke(inner, std::invoke(outer, target));
  };
}

template <typename Field> auto number(Field field, f64 least, f64 most) {
  return [=](const json &value, auto &target) -> Complaint {
    f64 given = value.is_number() ? value.get<f64>()
                                  : std::numeric_limits<f64>::quiet_NaN();
    if (!(given >= least && given <= most))
      return fmt::format("must be a number from {} to {}", least, most);
    std::invoke(field, target) = f32(given);
    return std::nullopt;
  };
}

/// A JSON value as a whole number in a range. 1.0 is none.
inline std::optional<i64> wholeOf(const json &value, i64 least, i64 most) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<u64>() > u64(most)))
    return std::nullopt;
  i64 given = value.get<i64>();
  return given < least || given > most ? std::nullopt : std::optional(given);
}

/// `Value`: what the field holds, perhaps as an optional.
template <typename Value, typename Field>
auto whole(Field field, i64 least, i64 most) {
  return [=](const json &value, auto &target) -> Complaint {
    auto given = wholeOf(value, least, most);
    if (!given)
      return fmt::format("must be a whole number from {} to {}", least, most);
    std::invoke(field, target) = Value(*given);
    return std::nullopt;
  };
}

/// A share of probability to keep. 0 keeps the likeliest token alone, and so
/// does the least number above it.
template <typename Field> auto share(Field field) {
  return [=](const json &value, auto &target) -> Complaint {
    f64 given = value.is_number() ? value.get<f64>() : -1;
    if (!(given >= 0 && given <= 1))
      return "must be a number from 0 to 1";
    std::invoke(field, target) = std::max(f32(given), 1e-30f);
    return std::nullopt;
  };
}

/// A count that is off at 0 and, as others write it, at -1.
template <typename Field> auto countOrOff(Field field) {
  return [=](const json &value, auto &target) -> Complaint {
    auto given = wholeOf(value, -1, 1 << 30);
    if (!given)
      return "must be a whole number; -1 and 0 switch it off";
    std::invoke(field, target) = *given < 0 ? 0 : u32(*given);
    return std::nullopt;
  };
}

template <typename Field> auto flag(Field field) {
  return [=](const json &value, auto &target) -> Complaint {
    if (!value.is_boolean())
      return "must be true or false";
    std::invoke(field, target) = value.get<bool>();
    return std::nullopt;
  };
}

template <typename Field> auto text(Field field) {
  return [=](const json &value, auto &target) -> Complaint {
    if (!value.is_string())
      return "must be a string";
    std::invoke(field, target) = value.get<std::string>();
    return std::nullopt;
  };
}

/// A string that says something of the caller, not of the answer.
inline Complaint readRemark(const json &value, auto &) {
  return value.is_string() ? Complaint() : "must be a string";
}

/// Keeps the value for later.
template <typename Field> auto raw(Field field) {
  return [=](const json &value, auto &target) -> Complaint {
    std::invoke(field, target) = value;
    return std::nullopt;
  };
}

/// Strings that end an answer: one, or a list.
template <typename Field> auto strings(Field field) {
  return [=](const json &value, auto &target) -> Complaint {
    std::vector<std::string> given;
    for (const json &each : value.is_array() ? value : json::array({value})) {
      if (!each.is_string())
        return "must be a string or a list of strings";
      given.push_back(each.get<std::string>());
    }
    std::invoke(field, target) = std::move(given);
    return std::nullopt;
  };
}

/// A parameter that is not implemented: only values that change nothing pass.
template <typename Target>
Parameter<Target> refused(std::string_view name,
                          std::vector<json> harmless = {}) {
  return {name,
          [harmless = std::move(harmless)](const json &value,
                                           Target &) -> Complaint {
            for (const json &other : harmless)
              if (value == other)
                return std::nullopt;
            return "is not supported by this server";
          },
          true};
}

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_PARAMETERS_H

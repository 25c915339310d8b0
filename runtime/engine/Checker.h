/// \file
/// Shared by the parts of the manifest's validator; private to this folder.
#ifndef LATHE_RUNTIME_ENGINE_CHECKER_H
#define LATHE_RUNTIME_ENGINE_CHECKER_H

#include "codegen/engine/engine_generated.h"
#include "runtime/engine/Validate.h"
#include "runtime/support/Quote.h"
#include "runtime/support/Result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace lathe::runtime {

/// Keeps the first thing that is wrong. All checks return true if fine, so that
/// they chain with &&. `item` names a field of the innermost Scope.
class Checker {
public:
  /// The part of the manifest that is being checked: "launch 3", "weight 'x'".
  /// Scopes nest; a message starts with all of them. Costs nothing while all is
  /// well.
  class Scope {
  public:
    Scope(Checker &checker, std::string_view kind, uint64_t index)
        : checker(checker), outer(checker.innermost), kind(kind), index(index) {
      checker.innermost = this;
    }
    Scope(Checker &checker, std::string_view kind,
          const flatbuffers::String *name)
        : checker(checker), outer(checker.innermost), kind(kind), name(name) {
      checker.innermost = this;
    }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;
    ~Scope() { checker.innermost = outer; }

  private:
    friend class Checker;
    void describe(std::string &text) const {
      if (outer)
        outer->describe(text);
      text += kind;
      text += ' ';
      text += name ? quoted(viewOf(name)) : std::to_string(index);
      text += ": ";
    }

    Checker &checker;
    const Scope *outer;
    std::string_view kind;
    uint64_t index = 0;
    const flatbuffers::String *name = nullptr;
  };

  /// Notes what is wrong and returns false.
  template <typename... Args>
  bool reject(ErrorKind kind, fmt::format_string<Args...> format,
              Args &&...args) {
    std::string text;
    if (innermost)
      innermost->describe(text);
    text += fmt::format(format, std::forward<Args>(args)...);
    error = Error{kind, std::move(text)};
    return false;
  }

  /// As reject() for a file that contradicts itself.
  template <typename... Args>
  bool invalid(fmt::format_string<Args...> format, Args &&...args) {
    return reject(ErrorKind::InvalidInput, format, std::forward<Args>(args)...);
  }

  /// `value` lies in [low, high].
  bool inRange(std::string_view item, uint64_t value, uint64_t low,
               uint64_t high) {
    return (value >= low && value <= high) ||
           invalid("{} is {}, expected {} to {}", item, value, low, high);
  }

  /// A list's length lies in [low, high]; an absent list has none.
  template <typename T>
  bool sized(std::string_view item, const flatbuffers::Vector<T> *list,
             uint64_t low, uint64_t high) {
    uint64_t count = list ? list->size() : 0;
    return (count >= low && count <= high) ||
           invalid("{}: found {} entries, expected {} to {}", item, count, low,
                   high);
  }

  /// Text for people: UTF-8, at most `maxBytes`.
  bool isText(std::string_view item, const flatbuffers::String *text,
              size_t minBytes, size_t maxBytes) {
    std::string_view view = viewOf(text);
    if (view.size() < minBytes || view.size() > maxBytes)
      return invalid("{} is a text of {} bytes, expected {} to {}", item,
                     view.size(), minBytes, maxBytes);
    return isUtf8(view) ||
           invalid("{} is {}, expected UTF-8", item, quoted(view));
  }

  /// A name of 1 to 128 characters out of [A-Za-z0-9_] and `extra`, which does
  /// not start with a digit.
  bool isName(std::string_view item, const flatbuffers::String *text,
              std::string_view extra = {}) {
    std::string_view view = viewOf(text);
    bool valid =
        !view.empty() && view.size() <= 128 && (view[0] < '0' || view[0] > '9');
    for (char c : view)
      valid = valid && ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                        (c >= '0' && c <= '9') || c == '_' ||
                        extra.find(c) != std::string_view::npos);
    return valid || invalid("{} is {}, expected a name of letters and digits",
                            item, quoted(view));
  }

  std::optional<Error> error;

private:
  const Scope *innermost = nullptr;
};

/// The programs and the KV groups (ValidateProgram.cpp); weights and model were
/// checked before.
bool checkKvGroups(Checker &check, const engine::fb::Manifest &manifest);
bool checkPrograms(Checker &check, const engine::fb::Manifest &manifest);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_ENGINE_CHECKER_H

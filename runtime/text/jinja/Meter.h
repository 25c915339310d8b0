/// \file
/// Budgets of one rendering, and the internal exception that reports their
/// end. Nothing thrown here leaves Template::parse or Template::render.
#ifndef LATHE_RUNTIME_TEXT_JINJA_METER_H
#define LATHE_RUNTIME_TEXT_JINJA_METER_H

#include "runtime/support/Result.h"
#include "runtime/text/jinja/Template.h"

#include <cstdint>
#include <string>
#include <utility>

namespace lathe::runtime::jinja {

/// Unwinds the parser or the interpreter; caught at the library's boundary.
struct Failure {
  /// Offset meaning "wherever the interpreter stands".
  static constexpr size_t nowhere = SIZE_MAX;

  ErrorKind kind;
  std::string message;
  /// Byte of the template, or `nowhere`.
  size_t offset = nowhere;
  /// Raised by the template itself: the message goes out as it stands.
  bool raised = false;
};

/// Ends the rendering because the template does something Python would raise
/// an exception for (TypeError, UndefinedError, …).
template <typename... Args>
[[noreturn]] void raise(fmt::format_string<Args...> format, Args &&...args) {
  throw Failure{ErrorKind::Unsupported,
                fmt::format(format, std::forward<Args>(args)...)};
}

/// Counts what one rendering spends. Not synchronised.
class Meter {
public:
  explicit Meter(const Limits &limits) : limits(limits) {}

  /// Spends `n` steps; about a node or 64 bytes of work each.
  void step(uint64_t n = 1) {
    if (n > limits.steps - steps)
      throw Failure{
          ErrorKind::Exhausted,
          fmt::format("the template needs more than {} steps", limits.steps)};
    steps += n;
  }

  /// Steps for touching `bytes` bytes.
  void touch(size_t bytes) { step(bytes / 64); }

  /// Takes `bytes` of value memory until release().
  void reserve(size_t bytes) {
    if (bytes > limits.valueBytes - used)
      throw Failure{ErrorKind::Exhausted,
                    fmt::format("the template needs more than {} bytes of "
                                "values",
                                limits.valueBytes)};
    used += bytes;
  }
  void release(size_t bytes) noexcept { used -= bytes; }

  size_t depthLimit() const { return limits.depth; }
  size_t outputLimit() const { return limits.outputBytes; }

private:
  Limits limits;
  uint64_t steps = 0;
  size_t used = 0;
};

/// Base of everything that counts as value memory. Literals of a template
/// have no meter: they outlive renderings and are shared by them.
class Metered {
public:
  Metered() = default;
  Metered(const Metered &) = delete;
  Metered &operator=(const Metered &) = delete;
  ~Metered() { discharge(); }

  /// Adds `bytes` to what this object holds.
  void charge(Meter *to, size_t bytes) {
    if (!to)
      return;
    to->reserve(bytes);
    meter = to;
    charged += bytes;
  }

  /// Gives everything back; the object must hold next to nothing now.
  void discharge() noexcept {
    if (meter)
      meter->release(charged);
    charged = 0;
  }

private:
  Meter *meter = nullptr;
  size_t charged = 0;
};

} // namespace lathe::runtime::jinja

#endif // LATHE_RUNTIME_TEXT_JINJA_METER_H

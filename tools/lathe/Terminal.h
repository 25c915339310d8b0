/// \file
/// Standard output and error: text whose loss is noticed, progress, colours.
#ifndef LATHE_TOOLS_LATHE_TERMINAL_H
#define LATHE_TOOLS_LATHE_TERMINAL_H

#include "runtime/support/Result.h"

#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lathe::tools {

/// Sends notices, warnings and errors (spdlog) to standard error as
/// "lathe: warning: …".
void setUpMessages();

/// From here on they are JSON, an object a line:
/// {"time":"…","level":"warning","message":"…"}.
void setUpJsonMessages();

/// Writes to standard output, buffered. After a failure nothing more is
/// written; outputError() tells of it.
void write(std::string_view text);
template <typename... Args>
void printOut(fmt::format_string<Args...> format, Args &&...args) {
  write(fmt::format(format, std::forward<Args>(args)...));
}

/// Writes one JSON document and a newline. Strings that are not UTF-8 show
/// U+FFFD there.
void printJson(const nlohmann::ordered_json &document);

/// Sends what is buffered. False once a write has failed: the reader of a pipe
/// went away, or the disk is full.
bool flushOutput();

/// The errno of the first failed write to standard output, or 0.
int outputError();

bool isTerminal(int descriptor);

/// True if output to this descriptor may have colours: a terminal, TERM is not
/// "dumb", NO_COLOR is not set.
bool mayColour(int descriptor);

/// `text` without control characters that would drive the terminal, for texts
/// from files. Newlines and tabs stay.
std::string printable(std::string_view text);

/// "1 token", "2 tokens": a count before a noun with a regular plural.
std::string counted(uint64_t count, std::string_view noun);

/// A one-line progress display on standard error. Shows nothing if that is not
/// a terminal or the work takes under a second. One thread at a time.
class Progress {
public:
  explicit Progress(bool enabled = true);
  ~Progress() { clear(); }
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  /// What is being done and how far it is; total 0: unknown.
  void update(std::string_view what, uint64_t done, uint64_t total);

  /// Removes the line, for other output.
  void clear();

private:
  using Clock = std::chrono::steady_clock;
  bool enabled;
  bool shown = false;
  Clock::time_point start = Clock::now();
  Clock::time_point last;
  std::string lastWhat;
};

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_TERMINAL_H

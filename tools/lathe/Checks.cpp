#include "tools/lathe/Checks.h"

#include "runtime/device/CpuBudget.h"
#include "runtime/device/ThreadTeam.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Terminal.h"

#include <charconv>
#include <cmath>
#include <spdlog/spdlog.h>

using namespace lathe;
using namespace lathe::tools;

CLI::Validator tools::wholeNumber(u64 least, u64 most) {
  // Conversion by CLI11 would wrap negative and cut large numbers.
  auto check = [least, most](std::string &text) -> std::string {
    u64 value = 0;
    const char *end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && rest == end && value >= least && value <= most)
      return {};
    return fmt::format("takes a whole number from {} to {}, not {}", least,
                       most, runtime::quoted(text));
  };
  return CLI::Validator(check, "");
}

CLI::Validator tools::byteCount() {
  auto transform = [](std::string &text) -> std::string {
    f64 value = 0;
    auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(),
                                         value, std::chars_format::fixed);
    std::string_view unit(rest, text.data() + text.size() - rest);
    constexpr std::string_view prefixes = "KMGT";
    f64 scale = 1;
    if (size_t prefix = prefixes.find(unit.substr(0, 1));
        !unit.empty() && prefix != std::string_view::npos) {
      unit.remove_prefix(1);
      bool binary = unit.starts_with('i');
      unit.remove_prefix(binary ? 1 : 0);
      scale = std::pow(binary ? 1024.0 : 1000.0, f64(prefix + 1));
    }
    f64 bytes = value * scale;
    if (error != std::errc() || (!unit.empty() && unit != "B") ||
        !(bytes >= 1 && bytes < 0x1p62))
      return fmt::format("takes a number of bytes such as 8G, 1.5T or 512Mi, "
                         "not {}",
                         runtime::quoted(text));
    text = std::to_string(u64(bytes));
    return {};
  };
  return CLI::Validator(transform, "");
}

CLI::Validator tools::notEmpty() {
  auto check = [](std::string &text) -> std::string {
    return text.empty() ? "must not be empty" : "";
  };
  return CLI::Validator(check, "");
}

void tools::addThreads(CLI::App &command, u32 &threads) {
  command
      .add_option("-t,--threads", threads,
                  "Threads (default: the CPUs this process may use)")
      ->check(wholeNumber(1, runtime::ThreadTeam::maxThreads));
}

void tools::warnOfThreads(u32 threads) {
  runtime::CpuBudget budget = runtime::CpuBudget::detect();
  if (threads / 2 > budget.threads)
    spdlog::warn("--threads {}: this process may use {} here, and more threads "
                 "than that only wait for each other",
                 threads, counted(budget.threads, "CPU"));
}

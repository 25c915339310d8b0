#include "tools/lathe/Checks.h"

#include "runtime/device/CpuBudget.h"
#include "runtime/device/ThreadTeam.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Terminal.h"

#include <charconv>
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

#include "runtime/serve/UtcTime.h"

#include <fmt/chrono.h>

namespace lathe::runtime::serve {

std::string utcTime(std::chrono::system_clock::time_point time) {
  auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  auto rest =
      std::chrono::duration_cast<std::chrono::milliseconds>(time - seconds);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     rest.count());
}

} // namespace lathe::runtime::serve

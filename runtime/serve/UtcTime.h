/// \file
/// Points in time as logs and recordings show them.
#ifndef LATHE_RUNTIME_SERVE_UTCTIME_H
#define LATHE_RUNTIME_SERVE_UTCTIME_H

#include <chrono>
#include <string>

namespace lathe::runtime::serve {

/// UTC with milliseconds (RFC 3339): "2025-01-31T12:00:00.123Z".
std::string utcTime(std::chrono::system_clock::time_point time);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_UTCTIME_H

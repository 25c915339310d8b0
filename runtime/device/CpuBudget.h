/// \file
/// How many CPUs this process may really use: affinity and cgroup quotas, not
/// the cores of the host.
#ifndef LATHE_RUNTIME_DEVICE_CPUBUDGET_H
#define LATHE_RUNTIME_DEVICE_CPUBUDGET_H

#include "kernels/abi/Types.h"

#include <optional>
#include <string>

namespace lathe::runtime {

/// The CPUs at this process's disposal and what limits them.
struct CpuBudget {
  /// Threads to start by default: min(affinity, quota rounded down), at
  /// least 1.
  u32 threads = 1;
  /// CPUs in the affinity mask.
  u32 affinity = 1;
  /// The tightest cgroup quota on the way to the root, in CPUs (7.65); nothing
  /// if there is none.
  std::optional<double> quota;

  /// Asks the system. Cgroup v1 and v2, parents included.
  static CpuBudget detect();

  /// The same with the files /proc/self/{cgroup,mountinfo} and everything that
  /// they point to taken below `root` (a fake one in tests; "" is the
  /// system's), and the size of the affinity mask given. Unreadable or
  /// malformed files count as no limit.
  static CpuBudget detectAt(const std::string &root, u32 affinity);

  /// One line for logs: "4 threads (8 CPUs in the affinity mask, cgroup quota
  /// 4.00)".
  std::string summary() const;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_DEVICE_CPUBUDGET_H

#include "runtime/device/CpuBudget.h"
#include "runtime/device/Cgroup.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <sched.h>
#include <thread>

namespace lathe::runtime {
namespace {

std::optional<double> readQuotaV2(const std::string &dir) {
  std::ifstream in(dir + "/cpu.max"); // "max 100000" or "400000 100000"
  double quota, period = 100000;
  if (!(in >> quota))
    return std::nullopt;
  in >> period;
  if (!(quota > 0) || !(period > 0))
    return std::nullopt;
  return quota / period;
}

std::optional<double> readQuotaV1(const std::string &dir) {
  double quota, period;
  if (!readNumber(dir + "/cpu.cfs_quota_us", quota) ||
      !readNumber(dir + "/cpu.cfs_period_us", period))
    return std::nullopt;
  if (!(quota > 0) || !(period > 0)) // -1: no limit
    return std::nullopt;
  return quota / period;
}

u32 affinityCount() {
  // The mask of a machine with more CPUs than cpu_set_t holds needs a larger
  // buffer; EINVAL says so.
  for (size_t cpus = CPU_SETSIZE; cpus <= size_t(1) << 20; cpus *= 2) {
    cpu_set_t *set = CPU_ALLOC(cpus);
    if (!set)
      break;
    size_t bytes = CPU_ALLOC_SIZE(cpus);
    int count = -1;
    if (sched_getaffinity(0, bytes, set) == 0)
      count = CPU_COUNT_S(bytes, set);
    CPU_FREE(set);
    if (count > 0)
      return u32(count);
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

} // namespace

CpuBudget CpuBudget::detect() { return detectAt("", affinityCount()); }

CpuBudget CpuBudget::detectAt(const std::string &root, u32 affinity) {
  CpuBudget budget;
  budget.affinity = std::max(1u, affinity);
  CgroupDirectories cgroups = findCgroups(root, "cpu");
  auto tighten = [&](std::optional<double> quota) {
    if (quota && (!budget.quota || *quota < *budget.quota))
      budget.quota = quota;
  };
  for (const std::string &dir : cgroups.v2)
    tighten(readQuotaV2(dir));
  for (const std::string &dir : cgroups.v1)
    tighten(readQuotaV1(dir));
  budget.threads = budget.affinity;
  if (budget.quota && *budget.quota < budget.affinity)
    budget.threads = std::max(1u, u32(*budget.quota));
  return budget;
}

std::string CpuBudget::summary() const {
  std::string text =
      fmt::format("{} thread{} ({} CPU{} in the affinity mask", threads,
                  threads == 1 ? "" : "s", affinity, affinity == 1 ? "" : "s");
  if (quota)
    text += fmt::format(", cgroup quota {:.2f}", *quota);
  return text + ")";
}

} // namespace lathe::runtime

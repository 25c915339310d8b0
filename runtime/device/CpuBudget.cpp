#include "runtime/device/CpuBudget.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <thread>
#include <vector>

namespace lathe::runtime {
namespace {

/// A cgroup hierarchy as mounted: where, and which cgroup its top shows (in a
/// container the mount may show a child of the host's root).
struct CgroupMount {
  std::string mountPoint;
  std::string shownRoot;
};

std::vector<std::string> readLines(const std::string &path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; lines.size() < 10000 && std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

/// mountinfo writes space, tab, newline and backslash as \ooo (proc(5)).
std::string unescapeOctal(const std::string &text) {
  std::string out;
  auto isOctal = [](char c) { return c >= '0' && c <= '7'; };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && isOctal(text[i + 1]) &&
        isOctal(text[i + 2]) && isOctal(text[i + 3])) {
      out += char((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                  (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool listContains(const std::string &commaList, const std::string &item) {
  std::istringstream in(commaList);
  for (std::string word; std::getline(in, word, ',');)
    if (word == item)
      return true;
  return false;
}

/// The mount of the v2 hierarchy, or of v1's cpu controller.
std::optional<CgroupMount> findMount(const std::vector<std::string> &mountinfo,
                                     bool v2) {
  for (const std::string &line : mountinfo) {
    // id parent major:minor root mount-point options [tags] - type source opts
    size_t dash = line.find(" - ");
    if (dash == std::string::npos)
      continue;
    std::istringstream head(line.substr(0, dash)), tail(line.substr(dash + 3));
    std::string id, parent, device, root, point, type, source, options;
    head >> id >> parent >> device >> root >> point;
    tail >> type >> source >> options;
    if (v2 ? type == "cgroup2"
           : type == "cgroup" && listContains(options, "cpu"))
      return CgroupMount{unescapeOctal(point), unescapeOctal(root)};
  }
  return std::nullopt;
}

/// The cgroup of this process in the v2 hierarchy or in v1's cpu controller.
std::optional<std::string> findCgroup(const std::vector<std::string> &lines,
                                      bool v2) {
  for (const std::string &line : lines) {
    // hierarchy:controllers:path
    size_t first = line.find(':');
    size_t second =
        first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    if (v2 ? line.substr(0, first) == "0" && controllers.empty()
           : listContains(controllers, "cpu"))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

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
  if (!(std::ifstream(dir + "/cpu.cfs_quota_us") >> quota) ||
      !(std::ifstream(dir + "/cpu.cfs_period_us") >> period))
    return std::nullopt;
  if (!(quota > 0) || !(period > 0)) // -1: no limit
    return std::nullopt;
  return quota / period;
}

/// The tightest quota of a cgroup and its parents up to the top of the mount.
std::optional<double> tightestQuota(const std::string &root,
                                    const CgroupMount &mount,
                                    std::string cgroup, bool v2) {
  // The path is relative to the hierarchy's root, the mount may start lower.
  if (mount.shownRoot != "/" && (cgroup == mount.shownRoot ||
                                 cgroup.rfind(mount.shownRoot + "/", 0) == 0))
    cgroup.erase(0, mount.shownRoot.size());
  // "/../x": the process is outside of what its cgroup namespace shows.
  if (cgroup.find("/..") != std::string::npos)
    cgroup.clear();

  std::optional<double> tightest;
  while (true) {
    while (!cgroup.empty() && cgroup.back() == '/')
      cgroup.pop_back();
    std::string dir = root + mount.mountPoint + cgroup;
    auto quota = v2 ? readQuotaV2(dir) : readQuotaV1(dir);
    if (quota && (!tightest || *quota < *tightest))
      tightest = quota;
    if (cgroup.empty())
      return tightest;
    cgroup.erase(cgroup.rfind('/') == std::string::npos ? 0
                                                        : cgroup.rfind('/'));
  }
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
  auto mountinfo = readLines(root + "/proc/self/mountinfo");
  auto cgroups = readLines(root + "/proc/self/cgroup");
  for (bool v2 : {true, false}) {
    auto mount = findMount(mountinfo, v2);
    auto cgroup = findCgroup(cgroups, v2);
    if (!mount || !cgroup)
      continue;
    auto quota = tightestQuota(root, *mount, *cgroup, v2);
    if (quota && (!budget.quota || *quota < *budget.quota))
      budget.quota = quota;
  }
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

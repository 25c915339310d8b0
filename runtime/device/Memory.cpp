#include "runtime/device/Memory.h"
#include "runtime/device/Cgroup.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace lathe::runtime {
namespace {

/// The value of "Key: N kB" or "key N" in a file of such lines.
bool readField(const std::string &path, std::string_view key, double &value) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    if (words >> name >> value && name == key)
      return true;
  }
  return false;
}

u64 addressSpaceLeft() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return ~u64(0);
  double pages = 0;
  readNumber("/proc/self/statm", pages);
  u64 used = u64(pages) * u64(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

} // namespace

MemoryBudget MemoryBudget::detect() { return detectAt("", addressSpaceLeft()); }

MemoryBudget MemoryBudget::detectAt(const std::string &root,
                                    u64 addressSpaceLeft) {
  MemoryBudget budget;
  auto tighten = [&](double bytes, std::string_view by) {
    u64 limit = bytes <= 0 ? 0 : bytes >= 0x1p63 ? ~u64(0) : u64(bytes);
    if (limit < budget.available)
      budget = {limit, by};
  };
  double kib;
  if (readField(root + "/proc/meminfo", "MemAvailable:", kib))
    tighten(kib * 1024, "free memory");

  // Cached file pages count as used, but go when others want the room; the
  // weights themselves are such pages.
  CgroupDirectories cgroups = findCgroups(root, "memory");
  auto tightenCgroup = [&](const std::string &dir, const char *limitFile,
                           const char *usageFile, const char *prefix) {
    double limit, used = 0, cached;
    if (!readNumber(dir + limitFile, limit))
      return;
    readNumber(dir + usageFile, used);
    for (const char *field : {"inactive_file", "active_file"})
      if (readField(dir + "/memory.stat", std::string(prefix) + field, cached))
        used -= cached;
    tighten(limit - (used > 0 ? used : 0), "cgroup memory limit");
  };
  for (const std::string &dir : cgroups.v2)
    tightenCgroup(dir, "/memory.max", "/memory.current", "");
  for (const std::string &dir : cgroups.v1)
    tightenCgroup(dir, "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                  "total_");
  if (addressSpaceLeft < budget.available)
    budget = {addressSpaceLeft, "ulimit -v", true};
  return budget;
}

Result<void> MemoryBudget::check(u64 bytes, std::string_view what,
                                 std::string_view advice) const {
  if (bytes <= available)
    return {};
  return fail(ErrorKind::Exhausted,
              "{} needs {} ({} bytes), but only {} ({} bytes, {}) are "
              "available; {}",
              what, formatBytes(bytes), bytes, formatBytes(available),
              available, limitedBy, advice);
}

std::string formatBytes(u64 bytes) {
  static constexpr const char *units[] = {"KiB", "MiB", "GiB",
                                          "TiB", "PiB", "EiB"};
  if (bytes < 1024)
    return fmt::format("{} B", bytes);
  double value = double(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, units[unit]);
}

u64 peakResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return u64(usage.ru_maxrss) * 1024;
}

MemoryRegion::MemoryRegion(MemoryRegion &&other) noexcept
    : base(std::exchange(other.base, nullptr)),
      length(std::exchange(other.length, 0)) {}

MemoryRegion &MemoryRegion::operator=(MemoryRegion &&other) noexcept {
  std::swap(base, other.base);
  std::swap(length, other.length);
  return *this;
}

MemoryRegion::~MemoryRegion() {
  if (base)
    munmap(base, length);
}

Result<MemoryRegion> MemoryRegion::map(u64 bytes, std::string_view what) {
  MemoryRegion region;
  if (bytes == 0)
    return region;
  void *address =
      bytes > u64(1) << 62
          ? MAP_FAILED
          : mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    return fail(ErrorKind::Exhausted, "cannot map {} ({} bytes) for {}: {}",
                formatBytes(bytes), bytes, what,
                bytes > u64(1) << 62 ? "too large" : std::strerror(errno));
  region.base = static_cast<u8 *>(address);
  region.length = bytes;
  return region;
}

} // namespace lathe::runtime

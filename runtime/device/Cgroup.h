/// \file
/// Where this process's cgroup keeps its limits.
#ifndef LATHE_RUNTIME_DEVICE_CGROUP_H
#define LATHE_RUNTIME_DEVICE_CGROUP_H

#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// Directories that hold the limit files of this process's cgroup, its parents
/// next, up to the top of what is mounted; empty where there is no such
/// hierarchy.
struct CgroupDirectories {
  std::vector<std::string> v2;
  std::vector<std::string> v1;
};

/// Reads /proc/self/{cgroup,mountinfo} below `root` ("" is the system's) for
/// `controller` ("cpu", "memory"). The directories have `root` in front.
/// Unreadable or malformed files give no directories. Any thread.
CgroupDirectories findCgroups(const std::string &root,
                              std::string_view controller);

/// The first number in a file; false if it cannot be read or has none (as
/// "max" in cgroup v2).
bool readNumber(const std::string &path, double &value);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_DEVICE_CGROUP_H

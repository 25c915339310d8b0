#include "runtime/device/Cgroup.h"

#include <fstream>
#include <optional>
#include <sstream>

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

bool listContains(const std::string &commaList, std::string_view item) {
  std::istringstream in(commaList);
  for (std::string word; std::getline(in, word, ',');)
    if (word == item)
      return true;
  return false;
}

/// The mount of the v2 hierarchy (no controller) or of a v1 controller.
std::optional<CgroupMount> findMount(const std::vector<std::string> &mountinfo,
                                     std::string_view v1Controller) {
  for (const std::string &line : mountinfo) {
    // id parent major:minor root mount-point options [tags] - type source opts
    size_t dash = line.find(" - ");
    if (dash == std::string::npos)
      continue;
    std::istringstream head(line.substr(0, dash)), tail(line.substr(dash + 3));
    std::string id, parent, device, root, point, type, source, options;
    head >> id >> parent >> device >> root >> point;
    tail >> type >> source >> options;
    if (v1Controller.empty()
            ? type == "cgroup2"
            : type == "cgroup" && listContains(options, v1Controller))
      return CgroupMount{unescapeOctal(point), unescapeOctal(root)};
  }
  return std::nullopt;
}

/// This process's cgroup in the v2 hierarchy or in that of a v1 controller.
std::optional<std::string> findCgroup(const std::vector<std::string> &lines,
                                      std::string_view v1Controller) {
  for (const std::string &line : lines) {
    // hierarchy:controllers:path
    size_t first = line.find(':');
    if (first == std::string::npos)
      continue;
    size_t second = line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    if (v1Controller.empty() ? line.substr(0, first) == "0"
                             : listContains(controllers, v1Controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

std::vector<std::string> walkUp(const std::string &root,
                                const CgroupMount &mount, std::string cgroup) {
  // The path is relative to the hierarchy's root, the mount may start lower.
  if (mount.shownRoot != "/" && (cgroup == mount.shownRoot ||
                                 cgroup.rfind(mount.shownRoot + "/", 0) == 0))
    cgroup.erase(0, mount.shownRoot.size());
  // "/../x": the process is outside of what its cgroup namespace shows.
  if (cgroup.find("/..") != std::string::npos)
    cgroup.clear();

  const std::string top = root + mount.mountPoint;
  std::vector<std::string> dirs;
  while (true) {
    while (!cgroup.empty() && cgroup.back() == '/')
      cgroup.pop_back();
    dirs.push_back(top);
    dirs.back() += cgroup;
    size_t slash = cgroup.rfind('/');
    if (slash == std::string::npos)
      return dirs;
    cgroup.erase(slash);
  }
}

} // namespace

CgroupDirectories findCgroups(const std::string &root,
                              std::string_view controller) {
  auto mountinfo = readLines(root + "/proc/self/mountinfo");
  auto cgroups = readLines(root + "/proc/self/cgroup");
  auto find = [&](std::string_view v1Controller) {
    auto mount = findMount(mountinfo, v1Controller);
    auto cgroup = findCgroup(cgroups, v1Controller);
    return mount && cgroup ? walkUp(root, *mount, *cgroup)
                           : std::vector<std::string>{};
  };
  return {find({}), find(controller)};
}

bool readNumber(const std::string &path, double &value) {
  return bool(std::ifstream(path) >> value);
}

} // namespace lathe::runtime

#include "tools/lathe/CacheLimit.h"

#include "runtime/device/Memory.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Terminal.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <optional>
#include <spdlog/spdlog.h>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace lathe;
using namespace lathe::tools;

namespace fs = std::filesystem;

namespace {

constexpr uint64_t defaultLimit = uint64_t{50} << 30;

std::optional<uint64_t> parseBytes(std::string_view text) {
  uint64_t value = 0;
  const char *begin = text.data(), *end = begin + text.size();
  auto [rest, error] = std::from_chars(begin, end, value);
  if (error != std::errc())
    return std::nullopt;
  if (rest == end)
    return value;
  constexpr std::string_view units = "KMGT";
  size_t unit = units.find(*rest);
  if (unit == std::string_view::npos || rest + 1 != end)
    return std::nullopt;
  auto shift = static_cast<unsigned>(10 * (unit + 1));
  if (value > std::numeric_limits<uint64_t>::max() >> shift)
    return std::nullopt;
  return value << shift;
}

struct Entry {
  std::string path;
  uint64_t bytes;
  timespec used;
};

std::vector<Entry> entriesOf(const std::string &directory) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    std::string path = it->path().string();
    struct stat info{};
    if (path.ends_with(".lathe") && lstat(path.c_str(), &info) == 0 &&
        S_ISREG(info.st_mode))
      entries.push_back(
          {std::move(path), static_cast<uint64_t>(info.st_size), info.st_mtim});
  }
  std::ranges::sort(entries, [](const Entry &a, const Entry &b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) <
           std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  return entries;
}

/// An exclusive lock that is had at once or not at all.
class TriedLock {
public:
  explicit TriedLock(const std::string &path)
      : descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)),
        missing(descriptor < 0 && errno == ENOENT),
        held(descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0) {}
  ~TriedLock() {
    if (descriptor >= 0)
      close(descriptor);
  }
  TriedLock(const TriedLock &) = delete;
  TriedLock &operator=(const TriedLock &) = delete;

  bool isHeld() const { return held; }
  bool isMissing() const { return missing; }

private:
  int descriptor;
  bool missing;
  bool held;
};

/// False if some process has the engine open or compiles it.
bool remove(const std::string &engine) {
  TriedLock making(engine + ".lock");
  TriedLock use(engine);
  if (!use.isHeld() || !(making.isHeld() || making.isMissing()))
    return false;
  if (unlink(engine.c_str()) != 0)
    return false;
  (void)unlink((engine + ".build").c_str());
  (void)unlink((engine + ".lock").c_str());
  return true;
}

} // namespace

uint64_t tools::cacheLimit() {
  const char *text = std::getenv("LATHE_CACHE_LIMIT");
  if (!text || !*text)
    return defaultLimit;
  if (auto bytes = parseBytes(text))
    return *bytes;
  spdlog::warn("LATHE_CACHE_LIMIT is {}; expected bytes, such as 20G; {} it is",
               runtime::quoted(text), runtime::formatBytes(defaultLimit));
  return defaultLimit;
}

void tools::holdInCache(const std::string &engine) {
  int descriptor = open(engine.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0)
    return;
  (void)futimens(descriptor, nullptr);
  // Left open: the lock goes with the process. trimCache() tries and does not
  // wait, so that this does not wait for long.
  if (flock(descriptor, LOCK_SH) != 0)
    close(descriptor);
}

void tools::trimCache(const std::string &directory) {
  std::vector<Entry> entries = entriesOf(directory);
  uint64_t total = 0, limit = cacheLimit();
  for (const Entry &entry : entries)
    total += entry.bytes;
  uint64_t removed = 0;
  for (const Entry &entry : entries) {
    if (total <= limit)
      break;
    if (remove(entry.path)) {
      total -= entry.bytes;
      ++removed;
    }
  }
  if (removed != 0)
    spdlog::info("{} not used for longest left the cache to keep it within {} "
                 "(LATHE_CACHE_LIMIT)",
                 counted(removed, "compiled model"),
                 runtime::formatBytes(limit));
}

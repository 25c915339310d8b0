#include "runtime/support/AtomicFile.h"

#include "runtime/support/Checked.h"
#include "runtime/support/Quote.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace lathe::runtime {

namespace {

ErrorKind kindOfErrno(int error) {
  switch (error) {
  case ENOENT:
  case ENOTDIR:
    return ErrorKind::NotFound;
  case ENOSPC:
  case EDQUOT:
  case EFBIG:
  case ENOMEM:
    return ErrorKind::Exhausted;
  default:
    return ErrorKind::Environment;
  }
}

tl::unexpected<Error> failErrno(const char *action, const std::string &path,
                                int error) {
  return fail(kindOfErrno(error), "cannot {} {}: {}", action, displayPath(path),
              std::strerror(error));
}

/// "dir/name" -> "dir/"; "name" -> "".
std::string directoryOf(const std::string &path) {
  return path.substr(0, path.rfind('/') + 1);
}

/// A directory entry that no other process is likely to pick at once.
std::string temporaryName(const std::string &target) {
  uint64_t random = 0;
  if (::getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
    random = static_cast<uint64_t>(::getpid());
  std::string directory = directoryOf(target);
  // NAME_MAX is 255 bytes; leave room for what is added.
  std::string name = target.substr(directory.size()).substr(0, 200);
  return fmt::format("{}.{}.{:016x}.tmp", directory, name, random);
}

Result<void> writeFully(int fd, uint64_t offset, std::span<const uint8_t> bytes,
                        const std::string &path) {
  auto last = checkedAdd<uint64_t>(offset, bytes.size());
  if (!last || *last > uint64_t(std::numeric_limits<off_t>::max()))
    return failErrno("write", path, EFBIG);
  while (!bytes.empty()) {
    ssize_t written =
        ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return failErrno("write", path, written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return {};
}

} // namespace

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : target(std::move(other.target)),
      temporary(std::exchange(other.temporary, {})),
      fd(std::exchange(other.fd, -1)), end(other.end) {}

AtomicFile &AtomicFile::operator=(AtomicFile &&other) noexcept {
  std::swap(target, other.target);
  std::swap(temporary, other.temporary);
  std::swap(fd, other.fd);
  std::swap(end, other.end);
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (fd >= 0)
    ::close(std::exchange(fd, -1));
  if (!temporary.empty()) {
    ::unlink(temporary.c_str());
    temporary.clear();
  }
}

Result<AtomicFile> AtomicFile::create(const std::string &path, unsigned mode) {
  if (path.empty() || path.back() == '/' ||
      path.find('\0') != std::string::npos)
    return fail(ErrorKind::InvalidInput, "'{}' is not a file name",
                displayPath(path));
  AtomicFile file;
  file.target = path;
  struct stat status;
  if (::stat(path.c_str(), &status) == 0) {
    // Renaming over /dev/null or a FIFO would destroy it.
    if (!S_ISREG(status.st_mode))
      return fail(ErrorKind::InvalidInput,
                  "cannot write {}: it exists and is not a regular file",
                  displayPath(path));
    if (char *resolved = ::realpath(path.c_str(), nullptr)) {
      file.target = resolved;
      std::free(resolved);
    }
  }
  for (int attempt = 0; attempt < 16; ++attempt) {
    file.temporary = temporaryName(file.target);
    file.fd = ::open(file.temporary.c_str(),
                     O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                     static_cast<mode_t>(mode));
    if (file.fd >= 0)
      return file;
    int error = errno;
    file.temporary.clear();
    if (error != EEXIST)
      return failErrno("create", path, error);
  }
  return failErrno("create", path, EEXIST);
}

Result<void> AtomicFile::append(std::span<const uint8_t> bytes) {
  return writeAt(end, bytes);
}

Result<void> AtomicFile::writeAt(uint64_t offset,
                                 std::span<const uint8_t> bytes) {
  if (auto written = writeFully(fd, offset, bytes, target); !written)
    return written;
  end = std::max<uint64_t>(end, offset + bytes.size());
  return {};
}

Result<void> AtomicFile::commit() {
  if (::fsync(fd) != 0)
    return failErrno("flush", target, errno);
  // Some file systems report a failed write only here.
  if (::close(std::exchange(fd, -1)) != 0 && errno != EINTR)
    return failErrno("write", target, errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0)
    return failErrno("replace", target, errno);
  temporary.clear();
  // Makes the rename durable. The file is whole either way, and not every file
  // system can flush a directory, so a failure here is none of the caller's.
  std::string directory = directoryOf(target);
  int parent = ::open(directory.empty() ? "." : directory.c_str(),
                      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent >= 0) {
    ::fsync(parent);
    ::close(parent);
  }
  return {};
}

} // namespace lathe::runtime

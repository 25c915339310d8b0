#include "runtime/support/MappedFile.h"

#include "runtime/support/Quote.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lathe::runtime {

namespace {

/// Closes a descriptor on every way out.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
};

const char *kindOfFile(mode_t mode) {
  if (S_ISDIR(mode))
    return "a directory";
  if (S_ISFIFO(mode))
    return "a FIFO";
  if (S_ISSOCK(mode))
    return "a socket";
  return "a device";
}

} // namespace

MappedFile::MappedFile(MappedFile &&other) noexcept
    : name(std::move(other.name)), data(std::exchange(other.data, nullptr)),
      length(std::exchange(other.length, 0)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(name, other.name);
  std::swap(data, other.data);
  std::swap(length, other.length);
  return *this;
}

MappedFile::~MappedFile() {
  if (data)
    ::munmap(const_cast<uint8_t *>(data), length);
}

Result<MappedFile> MappedFile::open(const std::string &path) {
  std::string shown = displayPath(path);
  if (path.empty() || path.find('\0') != std::string::npos)
    return fail(ErrorKind::InvalidInput, "'{}' is not a file name", shown);
  // O_NONBLOCK: opening a FIFO without a writer must not wait for one.
  Descriptor file{
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.fd < 0) {
    int error = errno;
    ErrorKind kind = error == ENOENT || error == ENOTDIR
                         ? ErrorKind::NotFound
                         : ErrorKind::Environment;
    if (error == ENXIO) // a socket
      kind = ErrorKind::InvalidInput;
    return fail(kind, "cannot open {}: {}", shown, std::strerror(error));
  }
  struct stat status;
  if (::fstat(file.fd, &status) != 0)
    return fail(ErrorKind::Environment, "cannot stat {}: {}", shown,
                std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    return fail(ErrorKind::InvalidInput, "{} is {}, not a regular file", shown,
                kindOfFile(status.st_mode));

  MappedFile mapped;
  mapped.name = path;
  if (status.st_size == 0)
    return mapped;
  size_t length = static_cast<size_t>(status.st_size);
  void *base = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (base == MAP_FAILED)
    return fail(errno == ENOMEM ? ErrorKind::Exhausted : ErrorKind::Environment,
                "cannot map {} ({} bytes): {}", shown, length,
                std::strerror(errno));
  mapped.data = static_cast<const uint8_t *>(base);
  mapped.length = length;
  return mapped;
}

} // namespace lathe::runtime

/// \file
/// A file mapped read-only into memory.
#ifndef LATHE_RUNTIME_SUPPORT_MAPPEDFILE_H
#define LATHE_RUNTIME_SUPPORT_MAPPEDFILE_H

#include "runtime/support/Result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace lathe::runtime {

/// Owns a read-only, private mapping of one whole regular file and unmaps it
/// when destroyed. Moving does not move the bytes: pointers into them stay
/// valid. Any number of threads may read at once.
///
/// The descriptor is closed after mapping; a file replaced by rename keeps its
/// old bytes here. Cutting a mapped file in place makes the kernel raise SIGBUS
/// on a later read, as for every program that maps files; Lathe itself only
/// ever replaces files by rename (AtomicFile).
class MappedFile {
public:
  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  /// Maps the regular file at `path`, following symbolic links; never blocks,
  /// even on a FIFO. An empty file maps to an empty span. Errors name the path:
  /// NotFound, InvalidInput (directory, FIFO, device, socket), Environment
  /// (no right to read), Exhausted (address space).
  static Result<MappedFile> open(const std::string &path);

  /// The file's bytes; size() of them, page-aligned.
  std::span<const uint8_t> bytes() const { return {data, length}; }
  /// The size in bytes when the file was opened.
  uint64_t size() const { return length; }
  /// The path as given to open().
  const std::string &path() const { return name; }

private:
  std::string name;
  const uint8_t *data = nullptr;
  size_t length = 0;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SUPPORT_MAPPEDFILE_H

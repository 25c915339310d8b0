/// \file
/// Writing a file so that its name only ever shows a whole one.
#ifndef LATHE_RUNTIME_SUPPORT_ATOMICFILE_H
#define LATHE_RUNTIME_SUPPORT_ATOMICFILE_H

#include "runtime/support/Result.h"

#include <cstdint>
#include <span>
#include <string>

namespace lathe::runtime {

/// Writes to a hidden temporary file in the target's directory; commit() makes
/// it durable and renames it over the target in one step. Destroyed without a
/// successful commit(), it removes the temporary and leaves the target as it
/// was. One thread at a time.
class AtomicFile {
public:
  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&other) noexcept;
  ~AtomicFile();

  /// Starts a new version of `path`. `mode` are the permission bits before the
  /// umask is applied. A symbolic link is followed, so that its target is the
  /// one replaced. Errors: NotFound (no such directory), InvalidInput (`path`
  /// exists and is not a regular file), Environment (no right to write there),
  /// Exhausted (disk full).
  static Result<AtomicFile> create(const std::string &path,
                                   unsigned mode = 0666);

  /// Appends all bytes. On failure the object only remains to be destroyed.
  Result<void> append(std::span<const uint8_t> bytes);

  /// Writes all bytes at an absolute offset, for headers whose values are known
  /// last. Does not move the end that append() writes to unless it passes it.
  Result<void> writeAt(uint64_t offset, std::span<const uint8_t> bytes);

  /// The size in bytes so far: where the next append() goes.
  uint64_t size() const { return end; }

  /// Flushes to the disk, renames over the target and flushes the directory.
  /// After success nothing more may be written.
  Result<void> commit();

  /// The file that commit() replaces, symbolic links resolved.
  const std::string &path() const { return target; }
  /// The temporary file, for tools that want a path to write to; empty after
  /// commit().
  const std::string &temporaryPath() const { return temporary; }

private:
  AtomicFile() = default;
  void discard();

  std::string target;
  std::string temporary;
  int fd = -1;
  uint64_t end = 0;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SUPPORT_ATOMICFILE_H

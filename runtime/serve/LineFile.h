/// \file
/// A file that lines are appended to without ever waiting for the disk.
#ifndef LATHE_RUNTIME_SERVE_LINEFILE_H
#define LATHE_RUNTIME_SERVE_LINEFILE_H

#include "runtime/support/Result.h"

#include "kernels/abi/Types.h"
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace lathe::runtime::serve {

/// Lines go to a thread of its own, which writes each batch with one call as
/// soon as it comes and flushes it to the disk. A crash can cost the last
/// lines, and leaves at most one that is cut; the next open() ends that one, so
/// that it spoils no other.
class LineFile {
public:
  using Warn = std::function<void(const std::string &message)>;

  /// Opens or makes (for its owner alone) a file to append to. `warn` is called
  /// once, on any thread, when lines are lost; may be null. Errors:
  /// NotFound (no such directory), Environment (no rights, another process
  /// writes to it), InvalidInput (no regular file).
  static Result<std::unique_ptr<LineFile>> open(const std::string &path,
                                                Warn warn);

  /// Writes what is left.
  ~LineFile();

  /// Appends a line; `line` has no newline. Never waits for the disk: while
  /// more than 64 MiB wait for a slow one, lines are lost. Any thread.
  void append(std::string_view line);

private:
  LineFile(int fd, std::string path, Warn warn);
  void work();
  void write(std::string_view lines);
  void lose(const std::string &why);

  int fd;
  std::string path;
  Warn warn;

  std::mutex mutex; ///< Of all below but the thread.
  std::condition_variable wakeUp;
  std::string waiting;
  bool hasLost = false, ending = false;
  std::thread thread;
};

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_LINEFILE_H

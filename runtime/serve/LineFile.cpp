#include "runtime/serve/LineFile.h"

#include "runtime/support/Quote.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace lathe::runtime::serve {

static constexpr u64 mostWaitingBytes = u64(64) << 20;

Result<std::unique_ptr<LineFile>> LineFile::open(const std::string &path,
                                                 Warn warn) {
  std::string shown = displayPath(path);
  // Not to block on a FIFO.
  int fd = ::open(path.c_str(),
                  O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
  if (fd < 0)
    return fail(errno == ENOENT ? ErrorKind::NotFound : ErrorKind::Environment,
                "cannot write to {}: {}", shown, std::strerror(errno));
  std::unique_ptr<LineFile> file(new LineFile(fd, path, std::move(warn)));
  struct stat status;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
    return fail(ErrorKind::InvalidInput,
                "{} is no regular file; name another one", shown);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorKind::Environment,
                "another process writes to {}; name another file", shown);
  char last = '\n';
  if (status.st_size > 0 && ::pread(fd, &last, 1, status.st_size - 1) != 1)
    return fail(ErrorKind::Environment, "cannot read {}: {}", shown,
                std::strerror(errno));
  if (last != '\n')
    file->waiting = "\n";
  // Signals are for the program's own threads.
  sigset_t allSignals, before;
  sigfillset(&allSignals);
  pthread_sigmask(SIG_SETMASK, &allSignals, &before);
  file->thread = std::thread([self = file.get()] { self->work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return file;
}

LineFile::LineFile(int fd, std::string path, Warn warn)
    : fd(fd), path(std::move(path)), warn(std::move(warn)) {}

LineFile::~LineFile() {
  if (thread.joinable()) {
    {
      std::lock_guard lock(mutex);
      ending = true;
    }
    wakeUp.notify_one();
    thread.join();
  }
  ::close(fd);
}

void LineFile::append(std::string_view line) {
  {
    std::lock_guard lock(mutex);
    if (waiting.size() + line.size() >= mostWaitingBytes)
      return lose("the disk is too slow");
    waiting.append(line).push_back('\n');
  }
  wakeUp.notify_one();
}

void LineFile::work() {
  for (;;) {
    std::string lines;
    {
      std::unique_lock lock(mutex);
      wakeUp.wait(lock, [this] { return ending || !waiting.empty(); });
      lines.swap(waiting);
      if (lines.empty())
        return;
    }
    write(lines);
  }
}

void LineFile::write(std::string_view lines) {
  off_t start = ::lseek(fd, 0, SEEK_END);
  while (!lines.empty()) {
    ssize_t count = ::write(fd, lines.data(), lines.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0) {
      std::string why = std::strerror(errno);
      // What was written of it may end inside a line.
      if (start >= 0)
        (void)!::ftruncate(fd, start);
      std::lock_guard lock(mutex);
      return lose(why);
    }
    lines.remove_prefix(size_t(count));
  }
  // Not fatal: the lines are in the file, if perhaps not on the disk.
  (void)::fdatasync(fd);
}

void LineFile::lose(const std::string &why) {
  if (std::exchange(hasLost, true) || !warn)
    return;
  warn(fmt::format("cannot write to {}: {}; lines of it are lost, all else "
                   "goes on",
                   displayPath(path), why));
}

} // namespace lathe::runtime::serve

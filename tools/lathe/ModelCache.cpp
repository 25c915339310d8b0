#include "tools/lathe/ModelCache.h"

#include "runtime/support/AtomicFile.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/CompilerLibrary.h"
#include "tools/lathe/ModelIdentity.h"
#include "tools/lathe/Places.h"
#include "tools/lathe/Terminal.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace lathe;
using namespace lathe::tools;
using runtime::displayPath;
using runtime::Engine;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::Result;

namespace fs = std::filesystem;

namespace {

using EnginePtr = std::shared_ptr<const Engine>;

/// Which build of the compiler it is; empty if there is none.
std::string compilerBuild() {
  struct stat info{};
  if (stat(compilerPath().c_str(), &info) != 0)
    return {};
  return fmt::format("{} {}.{}\n", info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec);
}

/// True if only this user can have written to the path.
bool isPrivate(const std::string &path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && info.st_uid == geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string textOf(const std::string &path) {
  auto file = runtime::MappedFile::open(path);
  return file ? std::string(file->bytes().begin(), file->bytes().end())
              : std::string();
}

/// Held while one process compiles an engine.
class FileLock {
public:
  /// Waits for it, saying so if another process has it. Does without where the
  /// file system has no locks: the engine is then at worst compiled twice.
  explicit FileLock(const std::string &path)
      : descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (descriptor < 0 || flock(descriptor, LOCK_EX | LOCK_NB) == 0 ||
        errno != EWOULDBLOCK)
      return;
    spdlog::info("another lathe is compiling this model; waiting for it");
    while (flock(descriptor, LOCK_EX) != 0 && errno == EINTR)
      ;
  }
  ~FileLock() {
    if (descriptor >= 0)
      close(descriptor);
  }
  FileLock(const FileLock &) = delete;
  FileLock &operator=(const FileLock &) = delete;

private:
  int descriptor;
};

/// A directory that is removed with everything in it.
class TemporaryDirectory {
public:
  static Result<TemporaryDirectory> create() {
    std::error_code error;
    fs::path folder = fs::temp_directory_path(error);
    std::string name = (error ? fs::path("/tmp") : folder) / "lathe-XXXXXX";
    if (!mkdtemp(name.data()))
      return fail(ErrorKind::Environment,
                  "cannot make a temporary directory {}: {}", displayPath(name),
                  std::strerror(errno));
    return TemporaryDirectory(std::move(name));
  }
  TemporaryDirectory(TemporaryDirectory &&other) noexcept
      : name(std::exchange(other.name, {})) {}
  TemporaryDirectory &operator=(TemporaryDirectory &&) = delete;
  ~TemporaryDirectory() {
    std::error_code error;
    if (!name.empty())
      fs::remove_all(name, error);
  }
  const std::string &path() const { return name; }

private:
  explicit TemporaryDirectory(std::string name) : name(std::move(name)) {}
  std::string name;
};

/// Makes the directories of the cache; says what is in the way, or nothing.
std::string prepareCache(const std::string &directory) {
  if (directory.empty())
    return "neither XDG_CACHE_HOME nor HOME is set";
  std::error_code error;
  fs::create_directories(directory + "/index", error);
  if (error)
    return fmt::format("{}: {}", displayPath(directory), error.message());
  if (!isPrivate(directory))
    return fmt::format("{} is not this user's alone", displayPath(directory));
  if (access(directory.c_str(), W_OK | X_OK) != 0)
    return fmt::format("{}: {}", displayPath(directory), std::strerror(errno));
  return {};
}

Result<void> compileTo(const std::string &model, const std::string &output,
                       const CacheRequest &request) {
  auto compiler = loadCompiler();
  if (!compiler)
    return failFrom(compiler);
  Progress progress;
  codegen::CompileOptions options;
  options.output = output;
  options.targets = {request.target};
  options.kvDtype = request.kvDtype;
  options.disabledPhases = request.disabledPhases;
  options.progress = [&](std::string_view what, uint64_t done, uint64_t total) {
    progress.update("compiling: " + std::string(what), done, total);
  };
  options.onNotice = [&](std::string_view message) {
    progress.clear();
    spdlog::warn("{}", printable(message));
  };
  auto summary = (*compiler)->compile(model, options);
  if (!summary)
    return failFrom(summary);
  return {};
}

/// The engine if it is in the cache and whole.
EnginePtr openHit(const std::string &file, const std::string &build) {
  // A missing compiler cannot have changed.
  if (!isPrivate(file) || (!build.empty() && textOf(file + ".build") != build))
    return nullptr;
  auto engine = Engine::open(file, {.trustCode = true, .trust = {}});
  if (!engine) {
    spdlog::warn("compiling again: {}", engine.error().message);
    return nullptr;
  }
  return *engine;
}

Result<EnginePtr> compileIntoCache(const std::string &model,
                                   const std::string &file,
                                   const std::string &build,
                                   const CacheRequest &request) {
  FileLock lock(file + ".lock");
  if (EnginePtr engine = openHit(file, build))
    return engine;
  std::string without;
  for (const std::string &phase : request.disabledPhases)
    without += " without " + phase;
  spdlog::info("compiling {} once for {}{}", displayPath(model), request.target,
               without);
  if (auto compiled = compileTo(model, file, request); !compiled)
    return failFrom(compiled);
  auto mark = runtime::AtomicFile::create(file + ".build", 0600);
  // Without the mark the next process compiles again.
  if (mark && mark->append({reinterpret_cast<const uint8_t *>(build.data()),
                            build.size()}))
    (void)mark->commit();
  return Engine::open(file, {.trustCode = true, .trust = {}});
}

} // namespace

Result<EnginePtr> tools::openCached(const std::string &path,
                                    const CacheRequest &request) {
  std::string directory = engineCacheDirectory();
  std::string problem = prepareCache(directory);
  bool readable = !directory.empty() && isPrivate(directory);
  auto content = contentHash(path, readable ? directory + "/index" : "");
  if (!content)
    return failFrom(content);
  std::string wanted = fmt::format("{}\n{}\n{}\n{}", *content, LATHE_VERSION,
                                   request.target, request.kvDtype);
  for (const std::string &phase : request.disabledPhases)
    wanted += "\nwithout " + phase;
  std::string key = shortHash(wanted);
  std::string file = fmt::format("{}/{}-{}.lathe", directory,
                                 fs::path(path).stem().string(), key);
  std::string build = compilerBuild();
  if (readable)
    if (EnginePtr engine = openHit(file, build))
      return engine;
  if (problem.empty())
    return compileIntoCache(path, file, build, request);

  spdlog::warn("the compiled model is not kept: {}", problem);
  auto folder = TemporaryDirectory::create();
  if (!folder)
    return failFrom(folder);
  std::string output = folder->path() + "/model.lathe";
  if (auto compiled = compileTo(path, output, request); !compiled)
    return failFrom(compiled);
  return Engine::open(output, {.trustCode = true, .trust = {}});
}

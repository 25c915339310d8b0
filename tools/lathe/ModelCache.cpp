#include "tools/lathe/ModelCache.h"

#include "runtime/support/AtomicFile.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/CacheLimit.h"
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
#include <functional>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/// The directory of compiled models, and whether it can be used.
struct Cache {
  std::string directory;
  std::string problem; ///< Why nothing can be put there; usually empty.
  /// It is this user's alone, so that what is in it may be run.
  bool readable = false;

  /// Finds the directory and makes it if need be.
  static Cache prepare() {
    Cache cache;
    cache.directory = engineCacheDirectory();
    cache.problem = cache.make();
    cache.readable = !cache.directory.empty() && isPrivate(cache.directory);
    return cache;
  }

private:
  std::string make() const {
    if (directory.empty())
      return "neither XDG_CACHE_HOME nor HOME is set";
    std::error_code error;
    fs::create_directories(directory + "/index", error);
    if (error)
      return fmt::format("{}: {}", displayPath(directory), error.message());
    if (!isPrivate(directory))
      return fmt::format("{} is not this user's alone", displayPath(directory));
    if (access(directory.c_str(), W_OK | X_OK) != 0)
      return fmt::format("{}: {}", displayPath(directory),
                         std::strerror(errno));
    return {};
  }
};

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
  holdInCache(file);
  auto engine = Engine::open(file, {.trustCode = true, .trust = {}});
  if (!engine) {
    spdlog::warn("compiling again: {}", engine.error().message);
    return nullptr;
  }
  return *engine;
}

/// Compiles into a process of its own, which may fail in any way.
Result<void> compileInChild(const std::string &model, uint64_t modelBytes,
                            const std::string &output,
                            const std::string &target) {
  fflush(stdout);
  pid_t child = fork();
  if (child < 0)
    return fail(ErrorKind::Environment, "cannot start the compiler: {}",
                std::strerror(errno));
  if (child == 0) {
    rlimit memory{}, seconds{};
    memory.rlim_cur = memory.rlim_max = 2 * modelBytes + (rlim_t(4) << 30);
    seconds.rlim_cur = seconds.rlim_max = 900;
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CPU, &seconds);
    if (int null = open("/dev/null", O_WRONLY); null >= 0)
      dup2(null, STDOUT_FILENO);
    execl("/proc/self/exe", "lathe", "compile", model.c_str(), "-o",
          output.c_str(), "--target", target.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail(ErrorKind::Environment, "{}: could not be built anew for {}",
                displayPath(model), target);
  return {};
}

/// What the cache makes an engine from.
struct CacheEntry {
  std::string wanted; ///< Everything that decides its bytes, but the compiler.
  std::string stem;   ///< Of its name.
  std::string notice; ///< Said when it is made.
  std::function<Result<void>(const std::string &output)> make;
};

Result<EnginePtr> makeInCache(const Cache &cache, const std::string &file,
                              const std::string &build,
                              const CacheEntry &entry) {
  FileLock lock(file + ".lock");
  if (EnginePtr engine = openHit(file, build))
    return engine;
  spdlog::info("{}", entry.notice);
  if (auto made = entry.make(file); !made)
    return failFrom(made);
  auto mark = runtime::AtomicFile::create(file + ".build", 0600);
  // Without the mark the next process compiles again.
  if (mark && mark->append({reinterpret_cast<const uint8_t *>(build.data()),
                            build.size()}))
    (void)mark->commit();
  holdInCache(file);
  trimCache(cache.directory);
  return Engine::open(file, {.trustCode = true, .trust = {}});
}

/// The engine of an entry, from the cache if that can be used.
Result<EnginePtr> openEntry(const Cache &cache, const CacheEntry &entry) {
  std::string file = fmt::format("{}/{}-{}.lathe", cache.directory, entry.stem,
                                 shortHash(entry.wanted));
  std::string build = compilerBuild();
  if (cache.readable)
    if (EnginePtr engine = openHit(file, build))
      return engine;
  if (cache.problem.empty())
    return makeInCache(cache, file, build, entry);

  spdlog::warn("the compiled model is not kept: {}", cache.problem);
  auto folder = TemporaryDirectory::create();
  if (!folder)
    return failFrom(folder);
  std::string output = folder->path() + "/model.lathe";
  if (auto made = entry.make(output); !made)
    return failFrom(made);
  return Engine::open(output, {.trustCode = true, .trust = {}});
}

/// A target in the key of an engine: another CPU's cpu:native is another.
std::string keyOf(const std::string &target) {
  if (target != "cpu:native")
    return target;
  return target + std::string(" ") +
         std::string(runtime::CpuFeatures::detect().bestIsa());
}

std::string nameOf(const std::string &target) {
  return target == "cpu:native" ? "this CPU" : target;
}

} // namespace

Result<EnginePtr> tools::openCached(const std::string &path,
                                    const CacheRequest &request) {
  Cache cache = Cache::prepare();
  auto content =
      contentHash(path, cache.readable ? cache.directory + "/index" : "");
  if (!content)
    return failFrom(content);
  CacheEntry entry;
  entry.wanted = fmt::format("{}\n{}\n{}\n{}", *content, LATHE_VERSION,
                             keyOf(request.target), request.kvDtype);
  entry.notice = fmt::format("compiling {} once for {}", displayPath(path),
                             nameOf(request.target));
  for (const std::string &phase : request.disabledPhases) {
    entry.wanted += "\nwithout " + phase;
    entry.notice += " without " + phase;
  }
  entry.stem = fs::path(path).stem().string();
  entry.make = [&](const std::string &output) {
    return compileTo(path, output, request);
  };
  return openEntry(cache, entry);
}

Result<EnginePtr> tools::openRebuilt(const Engine &engine,
                                     const std::string &target) {
  if (compilerBuild().empty())
    return fail(ErrorKind::Environment, "there is no compiler at {}",
                displayPath(compilerPath()));
  CacheEntry entry;
  entry.wanted = fmt::format("rebuilt\n{}\n{}", LATHE_VERSION, keyOf(target));
  for (const auto *section : *engine.manifest().sections())
    if (section->sha256())
      entry.wanted.append(section->sha256()->begin(), section->sha256()->end());
  if (const auto *root = engine.manifest().weights_root())
    entry.wanted.append(root->begin(), root->end());
  entry.notice = fmt::format("building {} anew for {} from its IR",
                             displayPath(engine.path()), nameOf(target));
  entry.stem = fs::path(engine.path()).stem().string();
  entry.make = [&](const std::string &output) {
    return compileInChild(engine.path(), engine.fileBytes(), output, target);
  };
  return openEntry(Cache::prepare(), entry);
}

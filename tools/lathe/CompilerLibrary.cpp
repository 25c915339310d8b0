#include "tools/lathe/CompilerLibrary.h"

#include "runtime/support/Quote.h"

#include <array>
#include <dlfcn.h>
#include <filesystem>
#include <system_error>

using namespace lathe;
using namespace lathe::tools;
using runtime::displayPath;
using runtime::ErrorKind;
using runtime::fail;

namespace fs = std::filesystem;

std::string tools::compilerPath() {
  constexpr const char *name = "liblathe-compiler.so";
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  fs::path prefix = program.parent_path().parent_path();
  // The build tree has lib/, an installation what CMake calls libdir.
  fs::path installed = prefix / LATHE_LIBDIR / name;
  fs::path plain = prefix / "lib" / name;
  return fs::exists(installed, error) ? installed.string() : plain.string();
}

runtime::Result<const codegen::CompilerApi *> tools::loadCompiler() {
  static const codegen::CompilerApi *loaded = nullptr;
  if (loaded)
    return loaded;
  std::string path = compilerPath();
  std::error_code error;
  if (!fs::exists(path, error))
    return fail(ErrorKind::NotFound,
                "this needs the compiler, and {} is not there; install it (in "
                "a build tree: build the target lathe-compiler)",
                displayPath(path));
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(ErrorKind::Environment, "cannot load the compiler: {}",
                dlerror());
  using Entry = const codegen::CompilerApi *(*)();
  auto entry = reinterpret_cast<Entry>(dlsym(library, "latheCompiler"));
  if (!entry)
    return fail(ErrorKind::Environment, "{} is not Lathe's compiler: {}",
                displayPath(path), dlerror());
  const codegen::CompilerApi *api = entry();
  if (api->version != codegen::compilerApiVersion)
    return fail(ErrorKind::Environment,
                "{} has version {} of the compiler's interface, expected {}; "
                "install lathe and its compiler from one build",
                displayPath(path), api->version, codegen::compilerApiVersion);
  loaded = api;
  return loaded;
}

#include "passes/PluginLoader.h"

#include "passes/Plugin.h"

#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"

#include <cstring>
#include <dlfcn.h>

using namespace lathe;
using namespace lathe::passes;
using runtime::ErrorKind;
using runtime::fail;
using runtime::Result;

namespace {

constexpr const char *versionSymbol = "lathePluginApiVersion";

/// Reads the plugin's version from the bytes of its data.
Result<PluginVersion> readVersion(const std::string &path) {
  if (!llvm::sys::fs::exists(path))
    return fail(ErrorKind::NotFound, "{}: there is no such plugin", path);
  auto owner = llvm::object::ObjectFile::createObjectFile(path);
  if (!owner)
    return fail(ErrorKind::InvalidInput, "{}: not a shared object: {}", path,
                llvm::toString(owner.takeError()));
  auto *elf =
      llvm::dyn_cast<llvm::object::ELFObjectFileBase>(owner->getBinary());
  if (!elf)
    return fail(ErrorKind::InvalidInput, "{}: not an ELF shared object", path);
  for (llvm::object::ELFSymbolRef symbol : elf->getDynamicSymbolIterators()) {
    auto name = symbol.getName();
    auto section = symbol.getSection();
    auto address = symbol.getAddress();
    if (!name || !section || !address || *name != versionSymbol ||
        *section == elf->section_end()) {
      llvm::consumeError(name.takeError());
      llvm::consumeError(section.takeError());
      llvm::consumeError(address.takeError());
      continue;
    }
    auto contents = (*section)->getContents();
    uint64_t start = (*section)->getAddress();
    if (!contents || *address < start || *address - start > contents->size() ||
        contents->size() - (*address - start) < sizeof(PluginVersion)) {
      llvm::consumeError(contents.takeError());
      return fail(ErrorKind::InvalidInput,
                  "{}: its {} lies outside of its data", path, versionSymbol);
    }
    PluginVersion version;
    std::memcpy(&version, contents->data() + (*address - start),
                sizeof(version));
    return version;
  }
  return fail(ErrorKind::InvalidInput,
              "{}: not a pass plugin for Lathe: it exports no {} (see "
              "LATHE_PASS_PLUGIN in passes/Plugin.h)",
              path, versionSymbol);
}

/// Plugins take Lathe's dialects from whoever loads them. If that is a library
/// that was itself loaded with local symbols, they must become visible first.
void showOwnSymbols() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(&showOwnSymbols), &info))
    dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

} // namespace

Result<void> passes::checkPassPlugin(const std::string &path) {
  auto version = readVersion(path);
  if (!version)
    return runtime::failFrom(version);
  if (version->api != pluginApiVersion)
    return fail(ErrorKind::Unsupported,
                "{}: built for version {} of Lathe's plugin interface, this "
                "compiler has {}; build the plugin again",
                path, version->api, pluginApiVersion);
  if (version->mlirMajor != LLVM_VERSION_MAJOR ||
      version->mlirMinor != LLVM_VERSION_MINOR)
    return fail(ErrorKind::Unsupported,
                "{}: built for MLIR {}.{}, this compiler has {}.{}; build the "
                "plugin again",
                path, version->mlirMajor, version->mlirMinor,
                LLVM_VERSION_MAJOR, LLVM_VERSION_MINOR);
  return {};
}

Result<void> passes::loadPassPlugin(const std::string &path) {
  if (auto ok = checkPassPlugin(path); !ok)
    return ok;
  showOwnSymbols();
  auto plugin = mlir::PassPlugin::load(path);
  if (!plugin)
    return fail(ErrorKind::Environment, "{}",
                llvm::toString(plugin.takeError()));
  plugin->registerPassRegistryCallbacks();
  return {};
}

/// \file
/// What a pass plugin includes: MLIR's plugin interface and Lathe's version of
/// it. docs/write-a-pass.md walks through one.
#ifndef LATHE_PASSES_PLUGIN_H
#define LATHE_PASSES_PLUGIN_H

#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

#include <cstdint>

namespace lathe::passes {

/// Grows with every change of the dialects or of this header that a plugin
/// would have to be built anew for.
inline constexpr uint32_t pluginApiVersion = 1;

/// What a plugin was built for. A loader reads it from the file, before any of
/// the plugin's code runs, so it holds no pointers.
struct PluginVersion {
  uint32_t api;
  uint32_t mlirMajor, mlirMinor;
};

} // namespace lathe::passes

/// Makes a shared object a pass plugin, once per plugin: `name` for messages,
/// `registerPasses` a function `void ()` that registers the passes with MLIR.
#define LATHE_PASS_PLUGIN(name, registerPasses)                                \
  extern "C" __attribute__((visibility("default")))                            \
  const ::lathe::passes::PluginVersion lathePluginApiVersion = {               \
      ::lathe::passes::pluginApiVersion, LLVM_VERSION_MAJOR,                   \
      LLVM_VERSION_MINOR};                                                     \
  extern "C"                                                                   \
      __attribute__((visibility("default"))) ::mlir::PassPluginLibraryInfo     \
      mlirGetPassPluginInfo() {                                                \
    return {MLIR_PLUGIN_API_VERSION, name, LLVM_VERSION_STRING,                \
            registerPasses};                                                   \
  }

#endif // LATHE_PASSES_PLUGIN_H

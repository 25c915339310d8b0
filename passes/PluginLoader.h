/// \file
/// Loads pass plugins.
#ifndef LATHE_PASSES_PLUGINLOADER_H
#define LATHE_PASSES_PLUGINLOADER_H

#include "runtime/support/Result.h"

#include <string>

namespace lathe::passes {

/// Checks, without running any of its code, that a file is a pass plugin for
/// this version of Lathe and of MLIR. Errors: NotFound, InvalidInput (no shared
/// object, no plugin), Unsupported (built for other versions; names both).
runtime::Result<void> checkPassPlugin(const std::string &path);

/// Checks a plugin, loads it for good and registers its passes with MLIR's
/// global registry. Running a plugin is running a program: load only what you
/// trust. Errors: as checkPassPlugin; Environment (it cannot be loaded).
runtime::Result<void> loadPassPlugin(const std::string &path);

} // namespace lathe::passes

#endif // LATHE_PASSES_PLUGINLOADER_H

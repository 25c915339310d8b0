/// \file
/// Where models and engines lie, and what a name on the command line means.
#ifndef LATHE_TOOLS_LATHE_PLACES_H
#define LATHE_TOOLS_LATHE_PLACES_H

#include "runtime/support/Result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lathe::tools {

/// $XDG_CACHE_HOME/lathe, or ~/.cache/lathe; empty if neither variable is an
/// absolute path.
std::string cacheDirectory();

/// Compiled models: cacheDirectory()/engines; empty as that.
std::string engineCacheDirectory();

/// Downloaded models: $LATHE_MODELS, or cacheDirectory()/models.
std::string modelsDirectory();

/// The file that a MODEL argument names: a path, "smollm2" or "gemma3", or the
/// name of a file in the models directory, with or without its ending. Errors:
/// NotFound, saying how to get it; InvalidInput (no name).
runtime::Result<std::string> findModel(const std::string &name);

/// What kind of file it is, by its first bytes.
enum class FileKind { Gguf, Engine, Other };
/// Errors: NotFound, Environment, InvalidInput (a directory).
runtime::Result<FileKind> kindOf(const std::string &path);

/// A model or engine that is there already.
struct LocalModel {
  std::string name; ///< What `lathe run` takes.
  std::string path;
  uint64_t bytes = 0;
};

/// Models and engines in the models directory and the working directory, in
/// order of their names.
std::vector<LocalModel> localModels();

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_PLACES_H

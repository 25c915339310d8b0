/// \file
/// Model files that were compiled once are not compiled again.
#ifndef LATHE_TOOLS_LATHE_MODELCACHE_H
#define LATHE_TOOLS_LATHE_MODELCACHE_H

#include "runtime/engine/Engine.h"
#include "runtime/support/Result.h"

#include <memory>
#include <string>
#include <vector>

namespace lathe::tools {

/// What an engine of a model file must be compiled for: part of its key.
struct CacheRequest {
  std::string target; ///< "cpu:avx2", "cpu:native"
  std::string kvDtype = "f16";
  std::vector<std::string> disabledPhases; ///< As in codegen::CompileOptions.
};

/// The engine of the GGUF file at `path`: from the cache, or compiled now.
///
/// The cache (engineCacheDirectory()) remembers for each path the file's size,
/// times, inode and header hash and the hash of its content; only if one of the
/// former changed is the content read again. Engines are named by content,
/// request and version, and made again by another build of the compiler. Two
/// processes that want one engine compile it once. A cache that cannot be
/// written is a warning; the engine is then made in the temporary directory and
/// gone afterwards. After a new one is written, old ones go (trimCache()).
/// Engines in it are run as the user's own: the directory must
/// belong to the user and be closed to others.
///
/// Errors: those of reading the model and of compiling it.
runtime::Result<std::shared_ptr<const runtime::Engine>>
openCached(const std::string &path, const CacheRequest &request);

/// An engine made anew for `target` ("cpu:avx2") from the IR and the weights of
/// one whose code does not fit this CPU or is not trusted: from the cache, or
/// built now, in a process of its own with bounded memory and time, since the
/// IR may come from anybody. Errors: Environment (no compiler here, or it
/// failed; what it said is on stderr).
runtime::Result<std::shared_ptr<const runtime::Engine>>
openRebuilt(const runtime::Engine &engine, const std::string &target);

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_MODELCACHE_H

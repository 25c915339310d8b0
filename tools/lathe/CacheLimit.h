/// \file
/// Keeping the cache of compiled models below a size.
#ifndef LATHE_TOOLS_LATHE_CACHELIMIT_H
#define LATHE_TOOLS_LATHE_CACHELIMIT_H

#include <cstdint>
#include <string>

namespace lathe::tools {

/// Most bytes of engines that the cache keeps: $LATHE_CACHE_LIMIT, a whole
/// number of bytes or of K, M, G or T (2^10 to 2^40), else 50 GiB. A value that
/// is none is said and not used.
uint64_t cacheLimit();

/// Marks an engine of the cache as used now, and as in use until this process
/// ends. Does nothing if it is not there or the file system has no locks.
void holdInCache(const std::string &engine);

/// Deletes engines of the cache, least recently used first, until the rest is
/// within cacheLimit(); says how many. Those that a process holds stay, and
/// count. Where the file system has no locks nothing is deleted.
void trimCache(const std::string &directory);

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_CACHELIMIT_H

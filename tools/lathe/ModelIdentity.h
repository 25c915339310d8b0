/// \file
/// Recognizing a model file without reading all of it.
#ifndef LATHE_TOOLS_LATHE_MODELIDENTITY_H
#define LATHE_TOOLS_LATHE_MODELIDENTITY_H

#include "runtime/support/Result.h"

#include <string>

namespace lathe::tools {

/// The SHA-256 of a model's content (all files of a split model), in hex.
/// `indexDirectory` remembers it by path, size, times, inode, device and header
/// hash and need not be writable; empty: nothing is remembered. Errors: those
/// of GgufFile::open.
runtime::Result<std::string> contentHash(const std::string &path,
                                         const std::string &indexDirectory);

/// The first 32 hexadecimal digits of the SHA-256 of a text.
std::string shortHash(const std::string &text);

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_MODELIDENTITY_H

/// \file
/// Who made an engine, in words.
#ifndef LATHE_TOOLS_LATHE_SIGNER_H
#define LATHE_TOOLS_LATHE_SIGNER_H

#include "runtime/engine/Engine.h"

#include <string>
#include <string_view>

namespace lathe::tools {

/// One word for JSON: "own", "accepted", "unknown", "unsigned", "bad".
std::string_view nameOf(runtime::TrustState state);

/// True if the engine names a key.
bool hasKey(const runtime::Trust &trust);

/// For people: "signed with your key".
std::string describe(const runtime::Trust &trust);

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_SIGNER_H

/// \file
/// An engine's structure as text, for comparison with a committed table.
#ifndef LATHE_TESTS_E2E_STRUCTURE_DESCRIBE_H
#define LATHE_TESTS_E2E_STRUCTURE_DESCRIBE_H

#include "runtime/schedule/LoadedEngine.h"

#include <string>
#include <vector>

namespace lathe::tests {

/// Barriers in a printed entry point (docs/design.md, "Kernels and code").
struct Barriers {
  /// Before each launch: whether there is one.
  std::vector<bool> before;
  u32 all = 0; ///< The last one included, behind all launches.
};

/// Of `body` or `head`, in steps of at most maxReplicatedRows rows (`few`) or
/// of more. Throws if the target's sources are not as the printer makes them.
Barriers barriersOf(const runtime::LoadedEngine &engine,
                    const std::string &entry, bool few);

/// Most barriers of any layer in a decode step.
u32 mostBarriersPerLayer(const runtime::LoadedEngine &engine);

/// Bytes of weights that one token reads, logits included.
u64 weightBytesPerToken(const runtime::LoadedEngine &engine);

/// The same of the tensors of the model file: all but a token embedding that
/// serves for nothing else, of which a row counts. Throws if it cannot be read.
u64 sourceBytesPerToken(const std::string &path);

/// Launches by layer with their skeletons and formats, and barriers; one line
/// per range of equal layers.
std::string describe(const runtime::LoadedEngine &engine);

} // namespace lathe::tests

#endif // LATHE_TESTS_E2E_STRUCTURE_DESCRIBE_H

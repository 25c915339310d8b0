/// \file
/// What a manifest must say beyond being a well-formed FlatBuffer. After these
/// checks every index, offset and size in it may be used without another look.
#ifndef LATHE_RUNTIME_ENGINE_VALIDATE_H
#define LATHE_RUNTIME_ENGINE_VALIDATE_H

#include "codegen/engine/engine_generated.h"
#include "runtime/support/KvTypeNames.h"
#include "runtime/support/Result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// Checks bytes from an untrusted file: the FlatBuffers verifier, then the
/// versions, then everything that docs/engine-format.md lists under "What a
/// reader checks". `bytes` must be aligned to 8; `sectionsEnd` is the file
/// offset that no section may pass (the manifest's own). Returns the manifest
/// inside `bytes`. Errors name the item, what was expected and what was found;
/// they do not name the file. Time and memory are linear in the number of
/// tables, which is bounded. Any thread.
Result<const engine::fb::Manifest *>
validateManifest(std::span<const uint8_t> bytes, uint64_t sectionsEnd);

/// A string of an engine file, without its length; "" if absent.
inline std::string_view viewOf(const flatbuffers::String *text) {
  return text ? std::string_view(text->data(), text->size())
              : std::string_view();
}

/// Bytes of the K, or V, of one KV head of a layer in a page of a valid
/// manifest's group.
inline uint64_t kvTileBytes(const engine::fb::KvGroup &group) {
  return lathe::kvTileBytes(*kvTypeFromName(viewOf(group.dtype())),
                            group.head_dim());
}

/// The names in a list separated by single spaces.
std::vector<std::string> splitNames(std::string_view list);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_ENGINE_VALIDATE_H

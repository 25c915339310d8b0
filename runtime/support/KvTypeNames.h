/// \file
/// The names of a KV cache's dtype on a command line and in an engine.
#ifndef LATHE_RUNTIME_SUPPORT_KVTYPENAMES_H
#define LATHE_RUNTIME_SUPPORT_KVTYPENAMES_H

#include "kernels/abi/KvTile.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

constexpr const char *kvTypeName(KvType type) {
  switch (type) {
  case KvType::F16:
    return "f16";
  case KvType::BF16:
    return "bf16";
  case KvType::F32:
    return "f32";
  case KvType::Int8:
    return "int8";
  }
  return "";
}

inline constexpr KvType kvTypes[] = {KvType::F16, KvType::BF16, KvType::F32,
                                     KvType::Int8};

/// Nothing for a name that is none.
constexpr std::optional<KvType> kvTypeFromName(std::string_view name) {
  for (KvType type : kvTypes)
    if (name == kvTypeName(type))
      return type;
  return std::nullopt;
}

/// All names, for help texts and checks.
inline std::vector<std::string> kvDtypeNames() {
  std::vector<std::string> names;
  for (KvType type : kvTypes)
    names.emplace_back(kvTypeName(type));
  return names;
}

} // namespace lathe

#endif // LATHE_RUNTIME_SUPPORT_KVTYPENAMES_H

#include "runtime/serve/Fingerprint.h"

#include <fmt/format.h>

namespace lathe::runtime::serve {

std::string engineHash(const Engine &engine) {
  return Sha256::toHex(engine.digest());
}

std::string systemFingerprint(const LoadedEngine &engine) {
  std::string_view layer = engine.targetName();
  if (auto colon = layer.find(':'); colon != layer.npos)
    layer.remove_prefix(colon + 1);
  return fmt::format("fp_{}_{}", engineHash(engine.engine()).substr(0, 16),
                     layer);
}

} // namespace lathe::runtime::serve

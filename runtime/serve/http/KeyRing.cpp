#include "runtime/serve/http/KeyRing.h"
#include "kernels/abi/Types.h"

namespace lathe::runtime::http {

static Sha256::Digest digestOf(std::string_view text) {
  return Sha256::digest(
      {reinterpret_cast<const uint8_t *>(text.data()), text.size()});
}

KeyRing::KeyRing(const std::vector<std::string> &keys) {
  for (const std::string &key : keys)
    digests.push_back(digestOf(key));
}

bool KeyRing::holds(std::string_view key) const {
  // Hashes are of one length, and all of them are compared in whole.
  Sha256::Digest given = digestOf(key);
  bool isKnown = false;
  for (const Sha256::Digest &digest : digests) {
    u8 difference = 0;
    for (size_t i = 0; i < digest.size(); ++i)
      difference |= u8(digest[i] ^ given[i]);
    isKnown |= difference == 0;
  }
  return isKnown;
}

} // namespace lathe::runtime::http

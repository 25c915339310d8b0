/// \file
/// Which API keys are let in.
#ifndef LATHE_RUNTIME_SERVE_HTTP_KEYRING_H
#define LATHE_RUNTIME_SERVE_HTTP_KEYRING_H

#include "runtime/support/Sha256.h"

#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime::http {

/// The keys of a server, as hashes. Immutable, for any thread.
class KeyRing {
public:
  explicit KeyRing(const std::vector<std::string> &keys);

  /// True if there is no key, or if `authorization` is "Bearer KEY" with one of
  /// them. The time that it takes tells neither a key nor its length.
  bool admits(std::string_view authorization) const;

private:
  std::vector<Sha256::Digest> digests;
};

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_KEYRING_H

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

  bool isEmpty() const { return digests.empty(); }

  /// The time that it takes tells neither a key nor its length.
  bool holds(std::string_view key) const;

private:
  std::vector<Sha256::Digest> digests;
};

} // namespace lathe::runtime::http

#endif // LATHE_RUNTIME_SERVE_HTTP_KEYRING_H

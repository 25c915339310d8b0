/// \file
/// Whose engines this user runs: the user's own signing key and the keys that
/// the user has accepted.
///
/// Running an engine's code is running a program. `lathe compile` signs what it
/// writes with a key of the user's own, made on first use; an engine signed
/// with it, or with an accepted key, runs as it is.
#ifndef LATHE_RUNTIME_ENGINE_TRUSTSTORE_H
#define LATHE_RUNTIME_ENGINE_TRUSTSTORE_H

#include "runtime/engine/Ed25519.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// A key that the user has accepted, and what they noted beside it.
struct AcceptedKey {
  PublicKey key;
  std::string note;
};

/// The directory with the files `signing-key` (mode 0600) and `trusted-keys`
/// (one key and a note per line; people may edit it). Holds nothing in memory:
/// each call reads the files. Several processes may use one directory at once.
class TrustStore {
public:
  /// A store in `directory`, which is made when something is first written.
  explicit TrustStore(std::string directory) : root(std::move(directory)) {}

  /// The user's store: $XDG_CONFIG_HOME/lathe, or ~/.config/lathe. Errors:
  /// Environment, if neither variable is an absolute path.
  static Result<TrustStore> ofUser();

  const std::string &directory() const { return root; }

  /// The user's signing key, made on first use. If two processes make it at
  /// once, both get the same. Errors: Environment (no right to write, or the
  /// file is open to other users), InvalidInput (not a key file).
  Result<SigningKey> ownKey() const;

  /// The public half of the own key; nothing if there is none yet. Never makes
  /// one. Errors as ownKey().
  Result<std::optional<PublicKey>> ownPublicKey() const;

  /// The accepted keys, in the order in which they were added. Errors:
  /// Environment (unreadable, or writable by other users), InvalidInput naming
  /// file and line.
  Result<std::vector<AcceptedKey>> accepted() const;

  /// Accepts a key from now on; no effect if it is there already. The note is
  /// one line for people and may be empty. Errors: Environment, InvalidInput
  /// (the note has a control character, or accepted() fails).
  Result<void> accept(const PublicKey &key, std::string_view note) const;

private:
  std::string keyPath() const { return root + "/signing-key"; }
  std::string acceptedPath() const { return root + "/trusted-keys"; }
  Result<std::optional<SigningKey>> readOwnKey() const;

  std::string root;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_ENGINE_TRUSTSTORE_H

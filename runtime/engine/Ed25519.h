/// \file
/// Ed25519 signatures (RFC 8032), through OpenSSL.
#ifndef LATHE_RUNTIME_ENGINE_ED25519_H
#define LATHE_RUNTIME_ENGINE_ED25519_H

#include "runtime/support/Result.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lathe::runtime {

using Signature = std::array<uint8_t, 64>;

/// Who signed: 32 bytes, written "ed25519:" and 64 hexadecimal digits.
struct PublicKey {
  std::array<uint8_t, 32> bytes = {};

  /// The key as people see and type it.
  std::string text() const;
  /// The key of such a text; errors: InvalidInput.
  static Result<PublicKey> parse(std::string_view text);

  /// True if `signature` over `message` was made with this key. Any thread.
  bool verifies(std::span<const uint8_t> message,
                const Signature &signature) const;

  /// True if the bytes are a point of the curve other than the eight of small
  /// order, under which signatures can be forged without a private key. Any
  /// thread.
  bool isSound() const;

  bool operator==(const PublicKey &) const = default;
};

/// A private key. Wiped from memory when destroyed. Any number of threads may
/// sign at once.
class SigningKey {
public:
  using Seed = std::array<uint8_t, 32>;

  /// A new random key. Errors: Environment (no randomness, no OpenSSL).
  static Result<SigningKey> generate();
  /// The key of a stored seed. Errors: Environment.
  static Result<SigningKey> fromSeed(const Seed &seed);

  SigningKey(const SigningKey &) = delete;
  SigningKey &operator=(const SigningKey &) = delete;
  SigningKey(SigningKey &&other) noexcept;
  SigningKey &operator=(SigningKey &&other) noexcept;
  ~SigningKey();

  const PublicKey &publicKey() const { return pair; }
  /// What to store.
  const Seed &seed() const { return secret; }

  /// Signs a message: the same bytes for the same message. Errors: Environment.
  Result<Signature> sign(std::span<const uint8_t> message) const;

private:
  SigningKey() = default;

  Seed secret = {};
  PublicKey pair;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_ENGINE_ED25519_H

/// \file
/// SHA-256 (FIPS 180-4) of bytes in memory, through OpenSSL.
#ifndef LATHE_RUNTIME_SUPPORT_SHA256_H
#define LATHE_RUNTIME_SUPPORT_SHA256_H

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace lathe::runtime {

/// A hash in progress: update() any number of times, then finish(). One thread
/// at a time per object. Uses OpenSSL's built-in implementation whatever the
/// machine's openssl.cnf says; it can fail only for want of memory, and then
/// the process ends as for any other failed small allocation.
class Sha256 {
public:
  using Digest = std::array<uint8_t, 32>;

  Sha256();
  Sha256(Sha256 &&) noexcept = default;
  Sha256 &operator=(Sha256 &&) noexcept = default;
  ~Sha256() = default;

  /// Appends bytes to the message.
  void update(std::span<const uint8_t> bytes);

  /// The digest of all bytes so far. Resets the object to an empty message.
  Digest finish();

  /// The digest of one span.
  static Digest digest(std::span<const uint8_t> bytes);

  /// 64 lower-case hexadecimal digits.
  static std::string toHex(const Digest &digest);

private:
  void start();

  struct Free {
    void operator()(void *context) const;
  };
  /// An EVP_MD_CTX; untyped to keep OpenSSL out of this header.
  std::unique_ptr<void, Free> context;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SUPPORT_SHA256_H

#include "runtime/engine/Ed25519.h"

#include "runtime/support/Quote.h"

#include <memory>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <openssl/rand.h>

namespace lathe::runtime {

namespace {

constexpr std::string_view keyPrefix = "ed25519:";

struct FreeKey {
  void operator()(EVP_PKEY *key) const { EVP_PKEY_free(key); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;

struct FreeDigest {
  void operator()(EVP_MD_CTX *context) const { EVP_MD_CTX_free(context); }
};
using DigestContext = std::unique_ptr<EVP_MD_CTX, FreeDigest>;

/// A library context of our own, so that the machine's openssl.cnf can neither
/// switch the algorithm off nor load code into the process. Null if OpenSSL has
/// no default provider.
OSSL_LIB_CTX *library() {
  static OSSL_LIB_CTX *const context = [] {
    OSSL_LIB_CTX *created = OSSL_LIB_CTX_new();
    if (created && !OSSL_PROVIDER_load(created, "default")) {
      OSSL_LIB_CTX_free(created);
      created = nullptr;
    }
    return created;
  }();
  return context;
}

tl::unexpected<Error> failOpenSsl(const char *action) {
  return fail(ErrorKind::Environment,
              "OpenSSL cannot {} an Ed25519 key: is its default provider "
              "installed?",
              action);
}

Key privateKey(const SigningKey::Seed &seed) {
  return Key(library() ? EVP_PKEY_new_raw_private_key_ex(library(), "ED25519",
                                                         nullptr, seed.data(),
                                                         seed.size())
                       : nullptr);
}

int hexDigit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return -1;
}

} // namespace

std::string PublicKey::text() const {
  std::string result(keyPrefix);
  for (uint8_t byte : bytes)
    result += fmt::format("{:02x}", byte);
  return result;
}

Result<PublicKey> PublicKey::parse(std::string_view text) {
  PublicKey key;
  bool valid = text.size() == keyPrefix.size() + 2 * key.bytes.size() &&
               text.substr(0, keyPrefix.size()) == keyPrefix;
  for (size_t i = 0; valid && i < key.bytes.size(); ++i) {
    int high = hexDigit(text[keyPrefix.size() + 2 * i]);
    int low = hexDigit(text[keyPrefix.size() + 2 * i + 1]);
    valid = high >= 0 && low >= 0;
    key.bytes[i] = static_cast<uint8_t>(16 * high + low);
  }
  if (!valid)
    return fail(ErrorKind::InvalidInput,
                "{} is not a key: expected 'ed25519:' and 64 hexadecimal "
                "digits",
                quoted(text));
  return key;
}

bool PublicKey::verifies(std::span<const uint8_t> message,
                         const Signature &signature) const {
  if (!library())
    return false;
  Key key(EVP_PKEY_new_raw_public_key_ex(library(), "ED25519", nullptr,
                                         bytes.data(), bytes.size()));
  DigestContext context(EVP_MD_CTX_new());
  return key && context &&
         EVP_DigestVerifyInit_ex(context.get(), nullptr, nullptr, library(),
                                 nullptr, key.get(), nullptr) == 1 &&
         EVP_DigestVerify(context.get(), signature.data(), signature.size(),
                          message.data(), message.size()) == 1;
}

Result<SigningKey> SigningKey::generate() {
  Seed seed;
  if (!library() ||
      RAND_priv_bytes_ex(library(), seed.data(), seed.size(), 256) != 1)
    return failOpenSsl("make");
  Result<SigningKey> key = fromSeed(seed);
  OPENSSL_cleanse(seed.data(), seed.size());
  return key;
}

Result<SigningKey> SigningKey::fromSeed(const Seed &seed) {
  Key key = privateKey(seed);
  SigningKey result;
  size_t size = result.pair.bytes.size();
  if (!key || EVP_PKEY_get_raw_public_key(key.get(), result.pair.bytes.data(),
                                          &size) != 1)
    return failOpenSsl("read");
  result.secret = seed;
  return result;
}

SigningKey::SigningKey(SigningKey &&other) noexcept
    : secret(other.secret), pair(other.pair) {
  OPENSSL_cleanse(other.secret.data(), other.secret.size());
}

SigningKey &SigningKey::operator=(SigningKey &&other) noexcept {
  std::swap(secret, other.secret);
  std::swap(pair, other.pair);
  return *this;
}

SigningKey::~SigningKey() { OPENSSL_cleanse(secret.data(), secret.size()); }

Result<Signature> SigningKey::sign(std::span<const uint8_t> message) const {
  Key key = privateKey(secret);
  DigestContext context(EVP_MD_CTX_new());
  Signature signature;
  size_t size = signature.size();
  if (!key || !context ||
      EVP_DigestSignInit_ex(context.get(), nullptr, nullptr, library(), nullptr,
                            key.get(), nullptr) != 1 ||
      EVP_DigestSign(context.get(), signature.data(), &size, message.data(),
                     message.size()) != 1)
    return failOpenSsl("sign with");
  return signature;
}

} // namespace lathe::runtime

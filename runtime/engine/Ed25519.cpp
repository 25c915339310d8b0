#include "runtime/engine/Ed25519.h"

#include "runtime/support/Quote.h"

#include <algorithm>
#include <memory>
#include <openssl/bn.h>
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

struct FreeNumber {
  void operator()(BIGNUM *number) const { BN_free(number); }
  void operator()(BN_CTX *scratch) const { BN_CTX_free(scratch); }
};
using Number = std::unique_ptr<BIGNUM, FreeNumber>;
using ScratchNumbers = std::unique_ptr<BN_CTX, FreeNumber>;

/// y, little-endian, of the points whose order divides 8: 0, 1 and p - 1, and
/// two of order 8 (both signs of x each).
constexpr std::array<std::array<uint8_t, 32>, 5> smallOrder = {{
    {},
    {1},
    {0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
    {0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4,
     0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6,
     0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05},
    {0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b,
     0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39,
     0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a},
}};

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

bool PublicKey::isSound() const {
  Number prime(BN_new()), y(BN_new()), square(BN_new()), top(BN_new()),
      bottom(BN_new()), product(BN_new());
  ScratchNumbers scratch(BN_CTX_new());
  std::array<uint8_t, 32> coordinate = bytes;
  coordinate.back() &= 0x7f; // The bit above is the sign of x.
  // The curve (RFC 8032, section 5.1): -x^2 + y^2 = 1 - 121665/121666 x^2 y^2
  // modulo p = 2^255 - 19. So x^2 = top / bottom with top = 121666 (y^2 - 1)
  // and bottom = 121666 - 121665 y^2, and there is an x if the product of the
  // two is a square.
  BIGNUM *p = prime.get();
  bool computed =
      p && y && square && top && bottom && product && scratch &&
      BN_set_bit(p, 255) && BN_sub_word(p, 19) &&
      BN_lebin2bn(coordinate.data(), int(coordinate.size()), y.get()) &&
      BN_mod_sqr(square.get(), y.get(), p, scratch.get()) &&
      BN_copy(top.get(), square.get()) && BN_sub_word(top.get(), 1) &&
      BN_mul_word(top.get(), 121666) && BN_copy(bottom.get(), square.get()) &&
      BN_mul_word(bottom.get(), 121665) && BN_sub_word(bottom.get(), 121666) &&
      BN_mod_mul(product.get(), top.get(), bottom.get(), p, scratch.get());
  if (!computed || BN_cmp(y.get(), p) >= 0)
    return false;
  // -1 is a square modulo p: the sign of `bottom` does not matter.
  if (BN_kronecker(product.get(), p, scratch.get()) < 0)
    return false;
  return std::ranges::find(smallOrder, coordinate) == smallOrder.end();
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

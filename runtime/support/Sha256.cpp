#include "runtime/support/Sha256.h"

#include <cstdio>
#include <cstdlib>
#include <openssl/evp.h>
#include <openssl/provider.h>

namespace lathe::runtime {

namespace {

[[noreturn]] void outOfMemory() {
  std::fputs("lathe: out of memory in SHA-256\n", stderr);
  std::abort();
}

/// The algorithm, fetched from a library context of our own: the default
/// context reads openssl.cnf, which may switch providers off. Lives until the
/// process ends, since hashes may be taken in destructors of statics.
const EVP_MD *algorithm() {
  static const EVP_MD *md = [] {
    OSSL_LIB_CTX *library = OSSL_LIB_CTX_new();
    if (!library || !OSSL_PROVIDER_load(library, "default"))
      outOfMemory();
    EVP_MD *fetched = EVP_MD_fetch(library, "SHA256", nullptr);
    if (!fetched)
      outOfMemory();
    return fetched;
  }();
  return md;
}

EVP_MD_CTX *get(const auto &context) {
  return static_cast<EVP_MD_CTX *>(context.get());
}

} // namespace

void Sha256::Free::operator()(void *context) const {
  EVP_MD_CTX_free(static_cast<EVP_MD_CTX *>(context));
}

Sha256::Sha256() : context(EVP_MD_CTX_new()) {
  if (!context)
    outOfMemory();
  start();
}

void Sha256::start() {
  if (EVP_DigestInit_ex2(get(context), algorithm(), nullptr) != 1)
    outOfMemory();
}

void Sha256::update(std::span<const uint8_t> bytes) {
  if (EVP_DigestUpdate(get(context), bytes.data(), bytes.size()) != 1)
    outOfMemory();
}

Sha256::Digest Sha256::finish() {
  Digest result;
  if (EVP_DigestFinal_ex(get(context), result.data(), nullptr) != 1)
    outOfMemory();
  start();
  return result;
}

Sha256::Digest Sha256::digest(std::span<const uint8_t> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string Sha256::toHex(const Digest &digest) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (uint8_t byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

} // namespace lathe::runtime

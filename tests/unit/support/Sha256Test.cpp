#include "runtime/support/Sha256.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

using namespace lathe::runtime;

namespace {

std::span<const uint8_t> bytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

std::string hexOf(std::string_view text) {
  return Sha256::toHex(Sha256::digest(bytesOf(text)));
}

// FIPS 180-4 examples.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(hexOf(""), "e3b0c44298fc1c149afbf4c8996fb924"
                       "27ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hexOf("abc"), "ba7816bf8f01cfea414140de5dae2223"
                          "b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hexOf(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, StreamingEqualsOneShotAndFinishStartsAgain) {
  std::string text(1000, 'x');
  Sha256 hash;
  for (int round = 0; round < 2; ++round) {
    for (size_t at = 0, step = 1; at < text.size(); at += step++)
      hash.update(bytesOf(std::string_view(text).substr(at, step)));
    EXPECT_EQ(Sha256::toHex(hash.finish()), hexOf(text));
  }
  Sha256 moved = std::move(hash);
  moved.update(bytesOf("abc"));
  EXPECT_EQ(Sha256::toHex(moved.finish()), hexOf("abc"));
}

} // namespace

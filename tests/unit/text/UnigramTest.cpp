#include "runtime/text/Charsmap.h"
#include "tests/unit/text/Vocabularies.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

namespace lathe::runtime::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TokenizerSpec
unigramSpec(const std::vector<std::pair<std::string, float>> &pieces) {
  TokenizerSpec spec;
  spec.model = TokenizerModel::Unigram;
  spec.tokens = {"<pad>", "</s>", "<unk>"};
  spec.types = {TokenType::Control, TokenType::Control, TokenType::Unknown};
  spec.scores = {0, 0, 0};
  for (const auto &[text, score] : pieces) {
    spec.tokens.push_back(text);
    spec.types.push_back(TokenType::Normal);
    spec.scores.push_back(score);
  }
  spec.eosId = 1;
  spec.unkId = 2;
  spec.addEos = spec.addSpacePrefix = spec.removeExtraSpaces = true;
  return spec;
}

TEST(Unigram, TheBestSumOfScoresWins) {
  // abc: a+bc = -3, ab+c = -2.5, a+b+c = -6.
  Tokenizer tokenizer = makeTokenizer(unigramSpec(
      {{"▁", -1}, {"a", -2}, {"b", -2}, {"c", -2}, {"bc", -1}, {"ab", -0.5}}));
  EXPECT_THAT(names(tokenizer, encode(tokenizer, "abc")),
              ElementsAre("▁", "ab", "c"));
  EXPECT_THAT(
      names(tokenizer, encode(tokenizer, "  a   b ", {.addSpecial = true})),
      ElementsAre("▁", "a", "▁", "b", "</s>"));
}

TEST(Unigram, UnknownCharactersAndBytes) {
  TokenizerSpec spec = unigramSpec({{"▁", -1}, {"a", -2}});
  Tokenizer tokenizer = makeTokenizer(spec);
  EXPECT_THAT(names(tokenizer, encode(tokenizer, "a🦙é\xFF"
                                                 "a")),
              ElementsAre("▁", "a", "<unk>", "a"));
  for (int byte = 0; byte < 256; ++byte) {
    spec.tokens.push_back(fmt::format("<0x{:02X}>", byte));
    spec.types.push_back(TokenType::Byte);
    spec.scores.push_back(0);
  }
  Tokenizer bytes = makeTokenizer(spec);
  EXPECT_THAT(names(bytes, encode(bytes, "aé\xFF"
                                         "a")),
              ElementsAre("▁", "a", "<0xC3>", "<0xA9>", "<0xFF>", "a"));
}

/// A map that replaces "A" by "ab" and "B" by nothing. Root's children sit at
/// offset ^ byte; a node's value at the place its own offset points to.
std::vector<uint8_t> smallMap() {
  std::vector<uint32_t> units(512);
  const uint32_t rootOffset = 256;
  units[0] = rootOffset << 10;
  auto add = [&](uint8_t byte, uint32_t valueAt, uint32_t value) {
    uint32_t node = rootOffset ^ byte;
    units[node] = (node ^ valueAt) << 10 | 1 << 8 | byte;
    units[valueAt] = uint32_t{1} << 31 | value;
  };
  add('A', 1, 0);
  add('B', 2, 3);
  std::vector<uint8_t> blob(4 + units.size() * 4);
  uint32_t size = units.size() * 4;
  std::memcpy(blob.data(), &size, 4);
  std::memcpy(blob.data() + 4, units.data(), size);
  for (char c : {'a', 'b', '\0', '\0'})
    blob.push_back(c);
  return blob;
}

TEST(Unigram, NormalizationMap) {
  TokenizerSpec spec = unigramSpec({{"▁", -1}, {"a", -2}, {"b", -2}});
  spec.charsmap = smallMap();
  Tokenizer tokenizer = makeTokenizer(spec);
  EXPECT_THAT(names(tokenizer, encode(tokenizer, "bABb")),
              ElementsAre("▁", "b", "a", "b", "b"));
}

TEST(Charsmap, SizesAreChecked) {
  EXPECT_TRUE(Charsmap::create({}));
  std::vector<uint8_t> map = smallMap();
  for (size_t size : {1, 3, 4, 100})
    EXPECT_FALSE(Charsmap::create(std::span(map).first(size))) << size;
  EXPECT_FALSE(Charsmap::create(std::span(map).first(map.size() - 4)))
      << "no texts";
  map.back() = 'x';
  auto open = Charsmap::create(map);
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().message, HasSubstr("NUL"));
  map.back() = 0;
  map.insert(map.end(), 300, 'x');
  map.push_back(0);
  EXPECT_FALSE(Charsmap::create(map)) << "a replacement of 300 bytes";
}

TEST(Charsmap, RandomMapsNeitherCrashNorHang) {
  std::mt19937 random(6);
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint8_t> map = smallMap();
    map.resize(4 + 512 * 4);
    for (int i = 0; i < 40; ++i)
      map[4 + random() % (map.size() - 4)] = random();
    for (size_t i = random() % 8; i < 8; ++i)
      map.push_back(random() % 2);
    map.push_back(0);
    auto created = Charsmap::create(map);
    ASSERT_TRUE(created);
    std::string text(16, '\0');
    for (char &c : text)
      c = random() % 2 ? 'A' : random();
    for (size_t at = 0; at < text.size(); ++at) {
      auto match = created->longestPrefix(std::string_view(text).substr(at));
      ASSERT_LE(match.length, text.size() - at);
      ASSERT_LE(match.replacement.size(), 256u);
    }
  }
}

} // namespace
} // namespace lathe::runtime::test

// The hash indexes of a vocabulary.
#include "runtime/text/TextIndex.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace lathe::runtime {
namespace {

TEST(TextIndex, FindsTextsOfEachLength) {
  // Lengths around the 8 bytes that lie in a slot; each differs from others of
  // its length in one byte only, and NULs at the end count.
  std::vector<std::string> texts;
  for (size_t size = 1; size <= 40; ++size)
    for (size_t at = 0; at < size; ++at)
      for (char c : {'b', '\0', '\xFF'}) {
        texts.emplace_back(size, 'a');
        texts.back()[at] = c;
      }
  TextIndex index(texts.size());
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_TRUE(index.insert(texts[i], static_cast<int32_t>(i)));
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string copy = texts[i];
    EXPECT_EQ(index.find(copy), static_cast<int32_t>(i)) << i;
  }
  for (size_t size = 0; size <= 41; ++size)
    EXPECT_EQ(index.find(std::string(size, 'a')), -1) << size;
}

TEST(TextIndex, KeepsTheFirstOfEqualTexts) {
  for (std::string text : {"x", "12345678", "123456789"}) {
    TextIndex index(2);
    std::string again = text;
    EXPECT_TRUE(index.insert(text, 5));
    EXPECT_FALSE(index.insert(again, 3));
    EXPECT_EQ(index.find(text), 5);
  }
}

TEST(TextIndex, HoldsAsManyAsItWasMadeFor) {
  for (int32_t count : {1, 2, 3, 5, 21, 22, 1000}) {
    std::vector<std::string> texts;
    for (int32_t i = 0; i < count; ++i)
      texts.push_back(std::to_string(i));
    TextIndex index(texts.size());
    MergeTable merges(texts.size());
    for (int32_t i = 0; i < count; ++i) {
      index.insert(texts[i], i);
      merges.insert(i, count - i, {static_cast<uint32_t>(i), i});
    }
    for (int32_t i = 0; i < count; ++i) {
      EXPECT_EQ(index.find(texts[i]), i);
      ASSERT_TRUE(merges.find(i, count - i));
      EXPECT_EQ(merges.find(i, count - i)->merged, i);
      EXPECT_FALSE(merges.find(count - i, count + i));
    }
    EXPECT_EQ(index.find(std::to_string(count)), -1);
  }
}

TEST(MergeTable, KeepsTheFirstOfEqualPairs) {
  MergeTable merges(2);
  merges.insert(7, 9, {4, 11});
  merges.insert(7, 9, {5, 12});
  ASSERT_TRUE(merges.find(7, 9));
  EXPECT_EQ(merges.find(7, 9)->rank, 4u);
  EXPECT_EQ(merges.find(7, 9)->merged, 11);
  EXPECT_FALSE(merges.find(9, 7));
}

} // namespace
} // namespace lathe::runtime

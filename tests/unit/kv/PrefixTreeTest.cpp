#include "runtime/kv/PrefixTree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

using namespace lathe;
using namespace lathe::runtime;

namespace {

const KvGroupInfo full{.window = 0, .pageBytes = 64};
const KvGroupInfo window40{.window = 40, .pageBytes = 64};

std::unique_ptr<KvCache> makeCache(std::vector<KvGroupInfo> groups,
                                   std::vector<u32> pages) {
  return KvCache::create(groups, {.pages = pages, .poisonFreed = true}).value();
}

/// `count` tokens from `first` on.
std::vector<i32> tokensFrom(i32 first, u32 count) {
  std::vector<i32> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

/// A cache, its tree and room for sequences of 1000 tokens.
struct PrefixTreeTest : testing::Test {
  std::unique_ptr<KvCache> cache = makeCache({full}, {40});
  std::unique_ptr<PrefixTree> tree = std::make_unique<PrefixTree>(*cache);

  void use(std::vector<KvGroupInfo> groups, std::vector<u32> pages) {
    tree.reset();
    cache = makeCache(std::move(groups), std::move(pages));
    tree = std::make_unique<PrefixTree>(*cache);
  }
  SequenceCache sequence() { return SequenceCache(*cache, 1000); }

  /// Evaluates tokens in steps of `step` and leaves them in the tree.
  void evaluate(const std::vector<i32> &tokens, std::string_view salt = "",
                u32 step = 1000) {
    SequenceCache own = sequence();
    auto place = tree->match(salt, tokens, u32(tokens.size()), own);
    while (own.length() < tokens.size()) {
      u32 rows = std::min(step, u32(tokens.size()) - own.length());
      ASSERT_TRUE(own.extend(rows).has_value());
      tree->extend(place, tokens, own);
    }
  }
  /// Tokens of a prompt that the tree has.
  u32 cached(const std::vector<i32> &tokens, std::string_view salt = "",
             u32 most = 1000) {
    SequenceCache own = sequence();
    auto place = tree->match(salt, tokens, most, own);
    EXPECT_TRUE(tree->isConsistent() && cache->isConsistent());
    return own.length();
  }
};

TEST_F(PrefixTreeTest, FindsFullPagesAndPartsOfOneMore) {
  evaluate(tokensFrom(0, 40));
  EXPECT_EQ(tree->nodes(), 2u);
  EXPECT_EQ(cache->pool(0).usedPages(), 2u);
  EXPECT_EQ(cached(tokensFrom(0, 40)), 32u);
  EXPECT_EQ(cached(tokensFrom(0, 32)), 32u);
  EXPECT_EQ(cached(tokensFrom(0, 32), "", 31), 31u);
  EXPECT_EQ(cached(tokensFrom(0, 20)), 20u);
  EXPECT_EQ(cached(tokensFrom(0, 3)), 3u);
  EXPECT_EQ(cached(tokensFrom(1, 40)), 0u);
  auto other = tokensFrom(0, 40);
  other[20] = 99;
  EXPECT_EQ(cached(other), 20u);
}

TEST_F(PrefixTreeTest, SaltsShareNothing) {
  evaluate(tokensFrom(0, 40), "a");
  EXPECT_EQ(cached(tokensFrom(0, 40), "a"), 32u);
  EXPECT_EQ(cached(tokensFrom(0, 40), "b"), 0u);
  EXPECT_EQ(cached(tokensFrom(0, 40)), 0u);
  evaluate(tokensFrom(0, 40), "b");
  EXPECT_EQ(tree->nodes(), 4u);
}

TEST_F(PrefixTreeTest, SharedPageIsCopiedBeforeItIsWritten) {
  evaluate(tokensFrom(0, 32));
  SequenceCache own = sequence();
  auto tokens = tokensFrom(0, 20);
  auto place = tree->match("", tokens, 20, own);
  ASSERT_EQ(own.length(), 20u);
  EXPECT_EQ(cache->pool(0).usedPages(), 2u);
  PageId shared = own.pages(0)[1];
  ASSERT_TRUE(own.extend(1).has_value());
  EXPECT_NE(own.pages(0)[1], shared);
  EXPECT_EQ(cache->pool(0).references(own.pages(0)[0]), 2u);
  EXPECT_EQ(cache->pool(0).references(shared), 1u);
}

TEST_F(PrefixTreeTest, TwoThatEvaluatedTheSameKeepOneCopy) {
  SequenceCache first = sequence(), second = sequence();
  auto tokens = tokensFrom(0, 35);
  auto placeOne = tree->match("", tokens, 35, first);
  auto placeTwo = tree->match("", tokens, 35, second);
  ASSERT_TRUE(first.extend(35).has_value());
  ASSERT_TRUE(second.extend(35).has_value());
  tree->extend(placeOne, tokens, first);
  EXPECT_EQ(cache->pool(0).usedPages(), 6u);
  tree->extend(placeTwo, tokens, second);
  EXPECT_EQ(cache->pool(0).usedPages(), 4u);
  EXPECT_EQ(first.pages(0)[1], second.pages(0)[1]);
  EXPECT_NE(first.pages(0)[2], second.pages(0)[2]);
}

TEST_F(PrefixTreeTest, EvictsLeastRecentLeavesFirst) {
  evaluate(tokensFrom(0, 48));
  evaluate(tokensFrom(100, 16));
  EXPECT_EQ(cached(tokensFrom(0, 48)), 48u); // now the more recent
  EXPECT_EQ(tree->idlePages(0), 4u);
  EXPECT_EQ(tree->evict(0, 1), 1u);
  EXPECT_EQ(cached(tokensFrom(100, 16)), 0u);
  EXPECT_EQ(tree->evict(0, 1), 1u);
  EXPECT_EQ(cached(tokensFrom(0, 48)), 32u);
  EXPECT_EQ(tree->evict(0, 100), 2u);
  EXPECT_EQ(tree->nodes(), 0u);
  EXPECT_EQ(cache->pool(0).usedPages(), 0u);
}

TEST_F(PrefixTreeTest, PagesInUseStay) {
  evaluate(tokensFrom(0, 48));
  SequenceCache own = sequence();
  auto place = tree->match("", tokensFrom(0, 32), 32, own);
  EXPECT_EQ(tree->idlePages(0), 1u);
  EXPECT_EQ(tree->evict(0, 100), 1u);
  EXPECT_EQ(tree->nodes(), 2u);
  EXPECT_TRUE(tree->isConsistent());
}

TEST_F(PrefixTreeTest, WindowGroupsNeedOnlyTheirWindow) {
  use({full, window40}, {40, 40});
  evaluate(tokensFrom(0, 160), "", 16);
  EXPECT_EQ(cached(tokensFrom(0, 160)), 160u);
  // The sequence that takes it holds only what its window sees: 40 tokens
  // before position 160 lie in three pages.
  SequenceCache own = sequence();
  auto place = tree->match("", tokensFrom(0, 160), 160, own);
  EXPECT_EQ(std::ranges::count(own.pages(1).first(10), reservedPage), 7);
  EXPECT_EQ(std::ranges::count(own.pages(0).first(10), reservedPage), 0);
  EXPECT_EQ(tree->idlePages(1), 7u);
  EXPECT_EQ(tree->idlePages(0), 0u);
}

TEST_F(PrefixTreeTest, MissingWindowPagesEndAPrefixEarlier) {
  use({full, window40}, {40, 40});
  evaluate(tokensFrom(0, 160), "", 16);
  {
    SequenceCache own = sequence();
    auto place = tree->match("", tokensFrom(0, 160), 160, own);
    EXPECT_EQ(tree->evict(1, 100), 7u);
  }
  EXPECT_EQ(cached(tokensFrom(0, 160)), 160u);
  EXPECT_EQ(cached(tokensFrom(0, 150)),
            0u); // page 7's 112..127 are there, 6's not
  EXPECT_EQ(tree->evict(1, 1), 1u);
  EXPECT_EQ(cached(tokensFrom(0, 160)), 0u);
  // What is evaluated anew fills the gap.
  evaluate(tokensFrom(0, 160), "", 16);
  EXPECT_EQ(cached(tokensFrom(0, 160)), 160u);
}

TEST_F(PrefixTreeTest, SaltsOfNobodyAreForgotten) {
  // Nothing to see from outside but that it stays fast and small.
  for (u32 i = 0; i < 10'000; ++i)
    EXPECT_EQ(cached(tokensFrom(0, 20), std::to_string(i)), 0u);
}

} // namespace

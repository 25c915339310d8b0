#include "runtime/kv/KvCache.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace lathe;
using namespace lathe::runtime;

namespace {

constexpr u64 bytesPerPage = 256;
const KvGroupInfo full{.window = 0, .pageBytes = bytesPerPage};
const KvGroupInfo window40{.window = 40, .pageBytes = bytesPerPage};

std::unique_ptr<KvCache> makeCache(std::vector<KvGroupInfo> groups,
                                   std::vector<u32> pages) {
  return KvCache::create(groups, {.pages = pages, .poisonFreed = true}).value();
}

/// Entries of a group's table that hold a page.
std::vector<u32> held(const SequenceCache &sequence, u32 group) {
  std::vector<u32> entries;
  for (u32 i = 0; i < sequence.pages(group).size(); ++i)
    if (sequence.pages(group)[i] != reservedPage)
      entries.push_back(i);
  return entries;
}

TEST(SequenceCache, GrowsByPages) {
  auto cache = makeCache({full}, {8});
  SequenceCache sequence(*cache, 100);
  EXPECT_EQ(sequence.pages(0).size(), 7u);
  for (u32 length = 1; length <= 100; ++length) {
    ASSERT_TRUE(sequence.extend(1).has_value());
    ASSERT_EQ(sequence.length(), length);
    ASSERT_EQ(cache->pool(0).usedPages(), (length + 15) / 16);
  }
  auto over = sequence.extend(1);
  ASSERT_FALSE(over.has_value());
  EXPECT_EQ(over.error().kind, ErrorKind::InvalidInput);
  EXPECT_EQ(over.error().message,
            "1 more tokens after 100 pass the context of 100 tokens");
}

TEST(SequenceCache, FullPoolIsAnErrorThatChangesNothing) {
  auto cache = makeCache({full, full}, {4, 2});
  SequenceCache sequence(*cache, 1000);
  ASSERT_TRUE(sequence.extend(20).has_value());
  EXPECT_FALSE(sequence.canExtend(13));
  auto result = sequence.extend(13); // group 1 has no third page
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::Exhausted);
  EXPECT_EQ(sequence.length(), 20u);
  EXPECT_EQ(cache->pool(0).usedPages(), 2u);
  EXPECT_TRUE(sequence.extend(12).has_value());
  EXPECT_TRUE(cache->isConsistent());
}

TEST(SequenceCache, WindowGroupGivesPassedPagesBack) {
  auto cache = makeCache({full, window40}, {20, 20});
  SequenceCache sequence(*cache, 320);
  ASSERT_TRUE(sequence.extend(100).has_value());
  // Rows 0.. see everything from 0: nothing can go before the next step.
  EXPECT_EQ(cache->pool(1).usedPages(), 7u);
  ASSERT_TRUE(sequence.extend(1).has_value());
  // Row 100 sees 61..100: pages 0..2 (up to 47) have passed, page 3 has not.
  EXPECT_THAT(held(sequence, 1), testing::ElementsAre(3, 4, 5, 6));
  EXPECT_EQ(held(sequence, 0).size(), 7u);
  for (u32 length = 102; length <= 320; ++length) {
    ASSERT_TRUE(sequence.extend(1).has_value());
    u32 row = length - 1, first = row - 40 + 1;
    ASSERT_EQ(held(sequence, 1).front(), first / 16);
    ASSERT_EQ(held(sequence, 1).back(), row / 16);
  }
  EXPECT_TRUE(cache->isConsistent());
}

// Passed pages pay for new ones in the same extend().
TEST(SequenceCache, PagesForSequenceIsEnoughForAnyChunking) {
  std::mt19937 random(2);
  for (u32 window : {1u, 15u, 16u, 17u, 40u, 128u})
    for (u32 stepRows : {1u, 7u, 16u, 33u}) {
      KvGroupInfo group{.window = window, .pageBytes = bytesPerPage};
      std::vector<KvGroupInfo> groups{full, group};
      auto pages = KvCache::pagesForSequence(groups, 500, stepRows);
      EXPECT_EQ(pages[0], 32u);
      auto cache = makeCache(groups, pages);
      SequenceCache sequence(*cache, 500);
      while (sequence.length() < 500) {
        u32 rows = 1 + random() % stepRows;
        rows = std::min(rows, 500 - sequence.length());
        u32 start = sequence.length();
        ASSERT_TRUE(sequence.extend(rows).has_value());
        for (u32 t = start; t < start + rows; ++t)
          for (u32 p = t < window ? 0 : t - window + 1; p <= t; ++p)
            ASSERT_NE(sequence.pages(1)[p / 16], reservedPage);
      }
      ASSERT_TRUE(cache->isConsistent());
    }
}

TEST(SequenceCache, TruncateForgets) {
  auto cache = makeCache({full}, {8});
  SequenceCache sequence(*cache, 128);
  ASSERT_TRUE(sequence.extend(100).has_value());
  sequence.truncate(33);
  EXPECT_EQ(sequence.length(), 33u);
  EXPECT_EQ(cache->pool(0).usedPages(), 3u);
  sequence.truncate(32);
  EXPECT_EQ(cache->pool(0).usedPages(), 2u);
  sequence.truncate(0);
  EXPECT_EQ(cache->pool(0).usedPages(), 0u);
  EXPECT_TRUE(sequence.extend(128).has_value());
}

TEST(SequenceCache, WindowGroupCannotGoBackBehindWhatItGaveBack) {
  auto cache = makeCache({window40}, {20});
  SequenceCache sequence(*cache, 320);
  ASSERT_TRUE(sequence.extend(100).has_value());
  EXPECT_TRUE(sequence.canTruncate(10));
  ASSERT_TRUE(sequence.extend(5).has_value()); // 48 and up remain
  EXPECT_TRUE(sequence.canTruncate(100));      // the latest extend undone
  EXPECT_TRUE(sequence.canTruncate(87));       // sees 48..87
  EXPECT_FALSE(sequence.canTruncate(86));
  EXPECT_TRUE(sequence.canTruncate(0));
  EXPECT_FALSE(sequence.canTruncate(106));
  sequence.truncate(0);
  EXPECT_EQ(cache->pool(0).usedPages(), 0u);
  ASSERT_TRUE(sequence.extend(16).has_value());
  EXPECT_THAT(held(sequence, 0), testing::ElementsAre(0));
}

TEST(SequenceCache, ForkCopiesOnWrite) {
  auto cache = makeCache({full}, {8});
  SequenceCache a(*cache, 128);
  ASSERT_TRUE(a.extend(20).has_value());
  const KvStrip &whole = cache->pool(0).strips().front();
  std::memset(cache->pool(0).at(a.pages(0)[1], whole), 5, bytesPerPage);
  SequenceCache b = a.fork();
  EXPECT_EQ(cache->pool(0).usedPages(), 2u);
  ASSERT_TRUE(b.extend(1).has_value());
  EXPECT_EQ(cache->pool(0).usedPages(), 3u);
  EXPECT_EQ(a.pages(0)[0], b.pages(0)[0]);
  EXPECT_NE(a.pages(0)[1], b.pages(0)[1]);
  EXPECT_EQ(cache->pool(0).at(b.pages(0)[1], whole)[100], 5);
  ASSERT_TRUE(a.extend(1).has_value()); // now its own: no copy
  EXPECT_EQ(cache->pool(0).usedPages(), 3u);

  SequenceCache c = b.fork(); // whole pages are never copied
  b.truncate(16);
  ASSERT_TRUE(b.extend(16).has_value());
  EXPECT_EQ(cache->pool(0).usedPages(), 4u);
  b.truncate(0);
  a.truncate(0);
  EXPECT_EQ(cache->pool(0).usedPages(), 2u);
  EXPECT_TRUE(cache->isConsistent());
}

TEST(SequenceCache, TruncateIntoASharedPageCopiesOnTheNextWrite) {
  auto cache = makeCache({full}, {3});
  SequenceCache a(*cache, 48);
  ASSERT_TRUE(a.extend(32).has_value());
  SequenceCache b = a.fork();
  b.truncate(8);
  EXPECT_EQ(cache->pool(0).usedPages(), 2u);
  EXPECT_FALSE(b.canExtend(9)); // the copy and one more
  ASSERT_TRUE(b.extend(8).has_value());
  EXPECT_NE(a.pages(0)[0], b.pages(0)[0]);
  EXPECT_TRUE(cache->isConsistent());
}

TEST(SequenceCache, DestroyedAndMovedGiveBackOnce) {
  auto cache = makeCache({full, window40}, {8, 8});
  {
    SequenceCache a(*cache, 128);
    ASSERT_TRUE(a.extend(60).has_value());
    SequenceCache b = std::move(a);
    EXPECT_EQ(b.length(), 60u);
    SequenceCache c(*cache, 128);
    ASSERT_TRUE(c.extend(10).has_value());
    c = std::move(b);
  }
  EXPECT_EQ(cache->pool(0).usedPages(), 0u);
  EXPECT_EQ(cache->pool(1).usedPages(), 0u);
  EXPECT_TRUE(cache->isConsistent());
}

TEST(KvCache, BytesSaturate) {
  std::vector<KvGroupInfo> groups{full, {.window = 0, .pageBytes = ~u64(0)}};
  EXPECT_EQ(KvCache::bytesFor(std::span(groups).first(1), std::vector<u32>{3}),
            4 * bytesPerPage);
  EXPECT_EQ(KvCache::bytesFor(groups, std::vector<u32>{3, 1}), ~u64(0));
}

} // namespace

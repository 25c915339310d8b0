#include "runtime/kv/PagePool.h"

#include <algorithm>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace lathe;
using namespace lathe::runtime;

namespace {

bool isZero(const PagePool &pool, PageId page) {
  return std::all_of(pool.strips().begin(), pool.strips().end(),
                     [&](const KvStrip &strip) {
                       const u8 *bytes = pool.at(page, strip);
                       return std::all_of(bytes, bytes + strip.bytes,
                                          [](u8 b) { return b == 0; });
                     });
}

TEST(PagePool, GivesEachPageOnceAndThenNone) {
  auto pool = PagePool::create({.pageBytes = 640, .pages = 4}).value();
  std::vector<PageId> ids;
  for (int i = 0; i < 4; ++i)
    ids.push_back(pool.allocate());
  std::sort(ids.begin(), ids.end());
  EXPECT_THAT(ids, testing::ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(pool.allocate(), reservedPage);
  EXPECT_EQ(pool.freePages(), 0u);
  EXPECT_TRUE(pool.isConsistent());
  pool.release(3);
  EXPECT_EQ(pool.allocate(), 3u);
}

TEST(PagePool, PagesAreZeroedAndTheReservedOneStaysZero) {
  auto pool =
      PagePool::create({.pageBytes = 640, .pages = 2, .poisonFreed = true})
          .value();
  PageId id = pool.allocate();
  EXPECT_TRUE(isZero(pool, id));
  const KvStrip &whole = pool.strips().front();
  std::memset(pool.at(id, whole), 7, 640);
  pool.release(id);
  EXPECT_EQ(pool.at(id, whole)[639], 0xff);
  EXPECT_EQ(pool.allocate(), id);
  EXPECT_TRUE(isZero(pool, id));
  EXPECT_TRUE(isZero(pool, reservedPage));
  EXPECT_EQ(pool.at(reservedPage, whole), pool.base());
  EXPECT_EQ(pool.at(2, whole), pool.base() + 1280);
}

TEST(PagePool, StripsOfNeighboursLieSideBySide) {
  std::vector<KvStrip> strips = {{0, 64}, {64, 128}, {256, 64}};
  auto pool =
      PagePool::create(
          {.pageBytes = 320, .strips = strips, .pages = 3, .poisonFreed = true})
          .value();
  PageId a = pool.allocate(), b = pool.allocate(), c = pool.allocate();
  EXPECT_EQ(pool.at(2, strips[0]), pool.base() + 2 * 64);
  EXPECT_EQ(pool.at(2, strips[1]), pool.base() + 4 * 64 + 2 * 128);
  EXPECT_EQ(pool.at(3, strips[2]), pool.base() + 4 * 256 + 3 * 64);
  for (const KvStrip &strip : strips) {
    std::memset(pool.at(a, strip), 1, strip.bytes);
    std::memset(pool.at(c, strip), 3, strip.bytes);
  }
  pool.copy(b, a);
  pool.release(a);
  for (const KvStrip &strip : strips)
    for (u64 i = 0; i < strip.bytes; ++i) {
      ASSERT_EQ(pool.at(a, strip)[i], 0xff);
      ASSERT_EQ(pool.at(b, strip)[i], 1);
      ASSERT_EQ(pool.at(c, strip)[i], 3);
    }
  EXPECT_EQ(pool.allocate(), a);
  EXPECT_TRUE(isZero(pool, a));
}

TEST(PagePool, CountsReferences) {
  auto pool = PagePool::create({.pageBytes = 64, .pages = 2}).value();
  PageId id = pool.allocate();
  pool.retain(id);
  pool.release(id);
  EXPECT_EQ(pool.references(id), 1u);
  EXPECT_EQ(pool.usedPages(), 1u);
  pool.release(id);
  EXPECT_EQ(pool.usedPages(), 0u);
  pool.release(reservedPage);
  EXPECT_TRUE(pool.isConsistent());
}

// B30: whatever happens, free + used = total, and all can be had again.
TEST(PagePool, RandomWorkLosesNoPage) {
  std::mt19937 random(1);
  auto pool = PagePool::create({.pageBytes = 64, .pages = 50}).value();
  std::vector<PageId> held;
  for (int step = 0; step < 20000; ++step) {
    u32 action = random() % 3;
    if (action == 0) {
      if (PageId id = pool.allocate())
        held.push_back(id);
      else
        EXPECT_EQ(pool.freePages(), 0u);
    } else if (!held.empty()) {
      size_t i = random() % held.size();
      if (action == 1 && held.size() < 200) {
        pool.retain(held[i]);
        held.push_back(held[i]);
      } else {
        pool.release(held[i]);
        held.erase(held.begin() + long(i));
      }
    }
    ASSERT_TRUE(pool.isConsistent());
  }
  for (PageId id : held)
    pool.release(id);
  EXPECT_EQ(pool.freePages(), 50u);
  for (int i = 0; i < 50; ++i)
    EXPECT_NE(pool.allocate(), reservedPage);
}

TEST(PagePool, ImpossibleSizesAreErrors) {
  EXPECT_EQ(
      PagePool::create({.pageBytes = 64, .strips = {{32, 33}}, .pages = 1})
          .error()
          .kind,
      ErrorKind::InvalidInput);
  EXPECT_EQ(PagePool::create({.pageBytes = 0, .pages = 1}).error().kind,
            ErrorKind::InvalidInput);
  EXPECT_EQ(PagePool::create({.pageBytes = 64, .pages = 0}).error().kind,
            ErrorKind::InvalidInput);
  EXPECT_EQ(PagePool::create({.pageBytes = u64(1) << 40, .pages = 1u << 30})
                .error()
                .kind,
            ErrorKind::Exhausted);
  EXPECT_EQ(PagePool::create({.pageBytes = u64(1) << 30, .pages = 1u << 28})
                .error()
                .kind,
            ErrorKind::Exhausted);
}

} // namespace

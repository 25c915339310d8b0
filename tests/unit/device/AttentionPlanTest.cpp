#include "runtime/device/AttentionPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

using namespace lathe;
using namespace lathe::runtime;

namespace {

/// Every row's visible chunks are covered exactly once, partials and counters
/// are consistent and within the capacities.
void checkPlan(AttentionPlan &plan, const AttentionShape &shape,
               std::span<const SequenceRows> sequences) {
  AttentionWorkList list = plan.list();
  std::map<std::pair<u32, u32>, u32> covered; // (row, chunk) -> times
  std::map<u32, std::vector<const AttentionWork *>> byCounter;
  std::set<u32> partials;
  for (u32 i = 0; i < list.count; ++i) {
    const AttentionWork &item = list.items[i];
    const SequenceRows &sequence = sequences[item.sequence];
    ASSERT_GE(item.firstRow, sequence.firstRow);
    ASSERT_LE(item.firstRow + item.rowCount, sequence.firstRow + sequence.rows);
    ASSERT_GE(item.rowCount, 1u);
    ASSERT_LE(item.rowCount, shape.rowTile);
    ASSERT_GE(item.chunkCount, 1u);
    for (u32 r = 0; r < item.rowCount; ++r)
      for (u32 c = 0; c < item.chunkCount; ++c)
        ++covered[{item.firstRow + r, item.firstChunk + c}];
    if (item.partial == ~0u) {
      EXPECT_EQ(item.siblings, 1u);
      continue;
    }
    ASSERT_EQ(item.rowCount, 1u);
    ASSERT_LT(item.counter, list.counterCount);
    byCounter[item.counter].push_back(&item);
    for (u32 c = 0; c < item.chunkCount; ++c) {
      EXPECT_TRUE(partials.insert(item.partial + c).second);
      EXPECT_LT(item.partial + c, plan.partialCapacity());
    }
  }
  for (u32 s = 0; s < sequences.size(); ++s)
    for (u32 r = 0; r < sequences[s].rows; ++r) {
      u32 t = sequences[s].start + r;
      u32 first = shape.window && t >= shape.window ? t - shape.window + 1 : 0;
      for (u32 c = first / shape.chunk; c <= t / shape.chunk; ++c)
        ASSERT_EQ((covered[{sequences[s].firstRow + r, c}]), 1u);
    }
  EXPECT_EQ(byCounter.size(), list.counterCount);
  for (auto &[counter, items] : byCounter) {
    EXPECT_EQ(items.size(), items[0]->siblings);
    // Siblings are neighbours in the list; their partial sets lie in chunk
    // order from the first one's.
    for (size_t i = 1; i < items.size(); ++i) {
      EXPECT_EQ(items[i], items[0] + i);
      EXPECT_EQ(items[i]->firstRow, items[0]->firstRow);
      EXPECT_EQ(items[i]->partial - items[0]->partial,
                items[i]->firstChunk - items[0]->firstChunk);
    }
  }
  for (u32 i = 0; i < list.counterCount * shape.kvHeads; ++i)
    EXPECT_EQ(list.counters[i], 0u);
}

TEST(AttentionPlan, PrefillUsesFullTiles) {
  AttentionShape shape{
      .rowTile = 16, .kvHeads = 3, .threads = 2, .rows = 512, .context = 2048};
  AttentionPlan plan(shape);
  std::vector<SequenceRows> sequences{{0, 512, 100}};
  plan.plan(sequences);
  checkPlan(plan, shape, sequences);
  EXPECT_EQ(plan.list().count, 32u);
  EXPECT_EQ(plan.list().items[0].chunkCount, 5u); // 0..611, longest first
  EXPECT_EQ(plan.list().items[31].chunkCount, 1u);
}

TEST(AttentionPlan, EnoughHeadsNeedNoSplit) {
  AttentionShape shape{.kvHeads = 4, .threads = 2, .context = 8192};
  AttentionPlan plan(shape);
  EXPECT_EQ(plan.partialCapacity(), 0u);
  std::vector<SequenceRows> sequences{{0, 1, 8000}};
  plan.plan(sequences);
  checkPlan(plan, shape, sequences);
  ASSERT_EQ(plan.list().count, 1u);
  EXPECT_EQ(plan.list().items[0].chunkCount, 63u);
}

TEST(AttentionPlan, LoneRowIsSplitAlongItsChunks) {
  AttentionShape shape{.kvHeads = 1, .threads = 2, .context = 8192};
  AttentionPlan plan(shape);
  EXPECT_EQ(plan.partialCapacity(), 64u); // rows = 1
  std::vector<SequenceRows> sequences{{0, 1, 1000}};
  plan.plan(sequences);
  checkPlan(plan, shape, sequences);
  ASSERT_EQ(plan.list().count, 4u);
  EXPECT_EQ(plan.list().counterCount, 1u);
  EXPECT_EQ(plan.list().items[3].chunkCount, 2u);
}

TEST(AttentionPlan, FewRowsOfOneSequenceAreSeparatedFirst) {
  AttentionShape shape{
      .rowTile = 16, .kvHeads = 1, .threads = 2, .rows = 64, .context = 8192};
  AttentionPlan plan(shape);
  std::vector<SequenceRows> sequences{{0, 8, 1000}};
  plan.plan(sequences);
  checkPlan(plan, shape, sequences);
  EXPECT_EQ(plan.list().count, 4u); // tiles of two rows
  EXPECT_EQ(plan.list().counterCount, 0u);
}

/// The share of the thread with the most to do when units are dealt out one by
/// one, over the even share.
f64 imbalance(AttentionPlan &plan, const AttentionShape &shape) {
  AttentionWorkList list = plan.list();
  std::vector<f64> cost(shape.threads);
  for (u32 unit = 0; unit < list.count * shape.kvHeads; ++unit) {
    const AttentionWork &item = list.items[unit / shape.kvHeads];
    cost[unit % shape.threads] += item.rowCount * item.chunkCount;
  }
  f64 sum = 0, most = 0;
  for (f64 c : cost) {
    sum += c;
    most = std::max(most, c);
  }
  return most / (sum / shape.threads);
}

TEST(AttentionPlan, ThreadsGetEvenWork) {
  for (u32 threads : {2u, 4u, 8u})
    for (u32 kvHeads : {1u, 3u, 4u}) {
      AttentionShape shape{.rowTile = 16,
                           .kvHeads = kvHeads,
                           .threads = threads,
                           .rows = 512,
                           .context = 8192};
      AttentionPlan plan(shape);
      // A causal prefill, a lone row, and a long sequence among short ones.
      for (std::vector<SequenceRows> sequences :
           {std::vector<SequenceRows>{{0, 512, 0}},
            std::vector<SequenceRows>{{0, 1, 6000}},
            std::vector<SequenceRows>{
                {0, 1, 50}, {1, 1, 60}, {2, 1, 6000}, {3, 5, 30}}}) {
        plan.plan(sequences);
        checkPlan(plan, shape, sequences);
        EXPECT_LT(imbalance(plan, shape), 1.35)
            << threads << " threads, " << kvHeads << " KV heads, "
            << sequences.size() << " sequences";
      }
    }
}

TEST(AttentionPlan, WindowSkipsPassedChunks) {
  AttentionShape shape{.rowTile = 4,
                       .window = 512,
                       .kvHeads = 4,
                       .threads = 1,
                       .rows = 4,
                       .context = 8192};
  AttentionPlan plan(shape);
  std::vector<SequenceRows> sequences{{0, 4, 2000}};
  plan.plan(sequences); // 1489..2003
  checkPlan(plan, shape, sequences);
  EXPECT_EQ(plan.list().items[0].firstChunk, 11u);
  EXPECT_EQ(plan.list().items[0].chunkCount, 5u);
}

// Many threads and a long context must not ask for gigabytes of partials.
TEST(AttentionPlan, PartialsAreBounded) {
  AttentionShape shape{
      .kvHeads = 1, .threads = 64, .rows = 512, .context = 131072};
  EXPECT_EQ(AttentionPlan(shape).partialCapacity(), 2048u);
  shape.context = 1 << 20;
  EXPECT_EQ(AttentionPlan(shape).partialCapacity(), 8192u);
}

TEST(AttentionPlan, RandomBatchesAreCoveredOnce) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    AttentionShape shape{.chunk = 32,
                         .rowTile = u32(1 + random() % 16),
                         .window = u32(random() % 2 ? 0 : 1 + random() % 200),
                         .kvHeads = u32(1 + random() % 4),
                         .threads = u32(1 + random() % 16),
                         .rows = 64,
                         .context = 4096};
    AttentionPlan plan(shape);
    for (int step = 0; step < 4; ++step) {
      std::vector<SequenceRows> sequences;
      u32 row = 0;
      while (row < 64 && sequences.size() < 1 + random() % 8) {
        u32 rows = random() % 2 ? 1 : 1 + random() % (64 - row);
        sequences.push_back({row, rows, u32(random() % (4096 - rows))});
        row += rows;
      }
      plan.plan(sequences);
      checkPlan(plan, shape, sequences);
      if (testing::Test::HasFatalFailure())
        return;
    }
  }
}

} // namespace

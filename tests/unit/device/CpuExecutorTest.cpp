#include "runtime/device/CpuExecutor.h"
#include "tests/unit/device/FakeProgram.h"

#include <atomic>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <new>
#include <numeric>
#include <random>

namespace {
std::atomic<lathe::u64> allocations{0};
} // namespace

// Counts every allocation of this binary.
void *operator new(std::size_t bytes) {
  ++allocations;
  if (void *memory = std::malloc(bytes))
    return memory;
  std::abort();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;

namespace {

/// A team, a cache and an executor of the fake program.
struct Machine {
  Machine(std::vector<u32> windows, u32 threads,
          CpuExecutor::Capacities capacities)
      : windows(windows) {
    StepProgram program = fakeProgram(windows, 256);
    team = std::move(*ThreadTeam::create({.threads = threads}));
    cache = std::move(*KvCache::create(
        program.groups,
        {.pages = std::vector<u32>(windows.size(), 200), .poisonFreed = true}));
    auto made = CpuExecutor::create(program, capacities, *team, cache.get());
    EXPECT_TRUE(made.has_value()) << made.error().message;
    executor = std::move(*made);
  }

  std::vector<u32> windows;
  std::unique_ptr<ThreadTeam> team;
  std::unique_ptr<KvCache> cache;
  std::unique_ptr<CpuExecutor> executor;
};

std::vector<i32> randomTokens(size_t count, u32 seed) {
  std::mt19937 random(seed);
  std::vector<i32> tokens(count);
  for (i32 &token : tokens)
    token = i32(random() % fakeVocab);
  return tokens;
}

void expectState(std::span<const f32> got, const std::vector<f32> &want) {
  ASSERT_EQ(std::vector<f32>(got.begin(), got.end()), want);
}

// Any cut of several sequences into ragged batches gives each row the state
// that its own history alone defines.
TEST(CpuExecutor, RaggedBatchesSeeTheirOwnHistory) {
  for (u32 threads : {1u, 3u}) {
    Machine m({0, 40}, threads, {.rows = 32, .sequences = 3});
    std::mt19937 random(threads);
    std::vector<std::vector<i32>> texts;
    std::vector<SequenceCache> caches;
    for (u32 s = 0; s < 3; ++s) {
      texts.push_back(randomTokens(200, s));
      caches.emplace_back(*m.cache, 256);
    }
    while (true) {
      std::vector<BatchSequence> batch;
      std::vector<std::pair<u32, u32>> rows; // (text, end) per row
      for (u32 s = 0; s < 3; ++s) {
        u32 done = caches[s].length();
        u32 count = u32(std::min<size_t>(random() % 11, 200 - done));
        if (count == 0)
          continue;
        ASSERT_TRUE(caches[s].extend(count).has_value());
        batch.push_back({&caches[s], std::span(texts[s]).subspan(done, count)});
        for (u32 i = 1; i <= count; ++i)
          rows.push_back({s, done + i});
      }
      if (batch.empty()) {
        if (caches[0].length() + caches[1].length() + caches[2].length() == 600)
          break;
        continue;
      }
      ASSERT_TRUE(m.executor->step(batch).has_value());
      for (u32 row = 0; row < rows.size(); ++row)
        expectState(
            m.executor->hidden(row),
            fakeState(std::span(texts[rows[row].first]).first(rows[row].second),
                      m.windows));
      ASSERT_TRUE(m.cache->isConsistent());
    }
    EXPECT_LT(m.cache->pool(1).usedPages(), 3u * 5);
  }
}

TEST(CpuExecutor, HeadTakesChosenRows) {
  Machine m({0}, 2, {.rows = 40});
  auto tokens = randomTokens(40, 9);
  SequenceCache cache(*m.cache, 256);
  ASSERT_TRUE(cache.extend(40).has_value());
  BatchSequence sequence{&cache, tokens};
  ASSERT_TRUE(m.executor->step({&sequence, 1}).has_value());
  std::vector<u32> rows{39, 0, 7};
  const f32 *logits = m.executor->head(rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    auto state = fakeState(std::span(tokens).first(rows[i] + 1), m.windows);
    for (u32 v = 0; v < fakeVocab; ++v)
      ASSERT_EQ(logits[i * fakeVocab + v], fakeLogit(state.data(), v));
  }
  std::vector<u32> all(maxHeadRows);
  std::iota(all.begin(), all.end(), 0u);
  logits = m.executor->head(all);
  auto state = fakeState(std::span(tokens).first(32), m.windows);
  EXPECT_EQ(logits[31 * fakeVocab + 96], fakeLogit(state.data(), 96));
}

std::vector<std::pair<u32, u32>> seenRanges;
std::vector<u32> seenWork; ///< Rows of wantedWork's items.
u32 seenAllRows;
void recordWanted(const StepArgs *args, u32 thread, u32) {
  if (thread != 0)
    return;
  seenRanges.clear();
  seenWork.clear();
  seenAllRows = 0;
  for (u32 i = 0; i < args->wantedRangeCount; ++i)
    seenRanges.push_back(
        {args->wantedRows[i].begin, args->wantedRows[i].count});
  for (u32 i = 0; i < args->wantedWork[0].count; ++i)
    for (u32 row = 0; row < args->wantedWork[0].items[i].rowCount; ++row)
      seenWork.push_back(args->wantedWork[0].items[i].firstRow + row);
  for (u32 i = 0; i < args->attentionWork[0].count; ++i)
    seenAllRows += args->attentionWork[0].items[i].rowCount;
  std::ranges::sort(seenWork);
}

TEST(CpuExecutor, WantedRowsAreRangesThatDoNotTouch) {
  Machine m({0}, 1, {.rows = 40, .sequences = 4});
  StepProgram program = fakeProgram({0}, 256);
  program.body = recordWanted;
  auto executor = std::move(*CpuExecutor::create(
      program, {.rows = 40, .sequences = 4}, *m.team, m.cache.get()));
  std::vector<SequenceCache> caches;
  std::vector<BatchSequence> batch;
  auto tokens = randomTokens(8, 3);
  for (u32 s = 0; s < 4; ++s) {
    caches.emplace_back(*m.cache, 256);
    ASSERT_TRUE(caches.back().extend(8).has_value());
  }
  auto stepWith = [&](std::vector<u32> wanted) {
    batch.clear();
    for (u32 s = 0; s < 4; ++s)
      batch.push_back({&caches[s], tokens, wanted[s]});
    ASSERT_TRUE(executor->step(batch).has_value());
    std::vector<u32> rows;
    for (auto [begin, count] : seenRanges)
      for (u32 i = 0; i < count; ++i)
        rows.push_back(begin + i);
    EXPECT_EQ(seenWork, rows);
    EXPECT_EQ(seenAllRows, 32u);
  };
  using Ranges = std::vector<std::pair<u32, u32>>;
  stepWith({1, 8, 3, 0});
  EXPECT_EQ(seenRanges, (Ranges{{7, 9}, {21, 3}}));
  stepWith({~0u, 9, 8, ~0u});
  EXPECT_EQ(seenRanges, (Ranges{{0, 32}}));
  stepWith({0, 0, 0, 0});
  EXPECT_EQ(seenRanges, Ranges{});
}

TEST(CpuExecutor, EveryThreadCallsTheBodyAndTraces) {
  Machine m({0}, 3, {.rows = 4});
  SequenceCache cache(*m.cache, 256);
  ASSERT_TRUE(cache.extend(4).has_value());
  auto tokens = randomTokens(4, 1);
  BatchSequence sequence{&cache, tokens};
  fakeBodyCalls = 0;
  std::vector<u64> trace(3 * 2);
  ASSERT_TRUE(m.executor->step({&sequence, 1}, trace.data()).has_value());
  EXPECT_EQ(fakeBodyCalls.load(), 3u);
  EXPECT_THAT(trace, testing::Each(4u));
}

// The rule for hot paths: nothing allocates after start.
TEST(CpuExecutor, StepsDoNotAllocate) {
  Machine m({0, 40}, 2, {.rows = 32, .sequences = 2});
  SequenceCache a(*m.cache, 256), b(*m.cache, 256);
  auto tokens = randomTokens(256, 2);
  std::vector<u32> rows{15, 16};
  std::vector<BatchSequence> batch{{&a, {}, /*wanted=*/9}, {&b, {}}};
  u64 before = allocations;
  for (u32 done = 0; done + 16 <= 256; done += 16) {
    ASSERT_TRUE(a.extend(16).has_value());
    ASSERT_TRUE(b.extend(3).has_value());
    batch[0].tokens = std::span(tokens).subspan(done, 16);
    batch[1].tokens = std::span(tokens).subspan(done, 3);
    ASSERT_TRUE(m.executor->step(batch).has_value());
    m.executor->head(rows);
  }
  EXPECT_EQ(allocations.load(), before);
}

TEST(CpuExecutor, WithoutKvTheWholeSequenceIsAStep) {
  auto team = std::move(*ThreadTeam::create({.threads = 2}));
  StepProgram program = fakeProgram({0}, 64, /*kv=*/false);
  auto executor =
      std::move(*CpuExecutor::create(program, {.rows = 64}, *team, nullptr));
  auto tokens = randomTokens(20, 4);
  BatchSequence sequence{nullptr, tokens};
  ASSERT_TRUE(executor->step({&sequence, 1}).has_value());
  expectState(executor->hidden(19), fakeState(tokens, fakeWindows));
}

TEST(CpuExecutor, BadBatchesAreErrors) {
  Machine m({0}, 1, {.rows = 8, .sequences = 2});
  SequenceCache cache(*m.cache, 400); // more than the program's context
  auto stepOf = [&](std::vector<i32> tokens) {
    EXPECT_TRUE(cache.extend(u32(tokens.size())).has_value());
    BatchSequence sequence{&cache, tokens};
    auto result = m.executor->step({&sequence, 1});
    cache.truncate(cache.length() - u32(tokens.size()));
    return result ? std::string("no error") : result.error().message;
  };
  EXPECT_EQ(stepOf({1, i32(fakeVocab)}),
            "token id 97 is not in the vocabulary of 97");
  EXPECT_EQ(stepOf({-1}), "token id -1 is not in the vocabulary of 97");
  EXPECT_EQ(stepOf(std::vector<i32>(9, 1)),
            "a step of 9 rows; this one takes at most 8");
  ASSERT_TRUE(cache.extend(256).has_value());
  EXPECT_EQ(stepOf({1}),
            "position 256 is past the engine's context of 256 tokens");
  EXPECT_FALSE(m.executor->step({}).has_value());
  std::vector<BatchSequence> three(3);
  EXPECT_EQ(m.executor->step(three).error().message,
            "a step of 3 sequences; this one takes 1 to 2");
  std::vector<i32> token{1};
  BatchSequence noCache{nullptr, token};
  EXPECT_EQ(m.executor->step({&noCache, 1}).error().kind, ErrorKind::Internal);
}

std::vector<u8 *> seenSlots;
void recordSlots(const StepArgs *args, u32, u32) {
  seenSlots.assign(args->slots, args->slots + 3);
}

TEST(CpuExecutor, SlotsAreAlignedDisjointAndSized) {
  auto team = std::move(*ThreadTeam::create({.threads = 1}));
  StepProgram program = fakeProgram({0}, 256);
  // 5 rows, 2 sequences, 1 thread, and C: wanted items 2, so 1 row x 8 chunks.
  program.slots = {{.rows = 100, .sequences = 7, .constant = 3},
                   {.partials = 1000, .threads = 10},
                   {.rows = 1}};
  program.body = recordSlots;
  auto cache = std::move(*KvCache::create(program.groups, {.pages = {4}}));
  auto executor = std::move(*CpuExecutor::create(
      program, {.rows = 5, .sequences = 2}, *team, cache.get()));
  SequenceCache sequence(*cache, 64);
  ASSERT_TRUE(sequence.extend(1).has_value());
  std::vector<i32> token{1};
  BatchSequence one{&sequence, token};
  ASSERT_TRUE(executor->step({&one, 1}).has_value());
  for (u8 *slot : seenSlots)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(slot) % 64, 0u);
  EXPECT_EQ(seenSlots[1] - seenSlots[0], 576);  // 500 + 14 + 3
  EXPECT_EQ(seenSlots[2] - seenSlots[1], 8064); // 8000 + 10
}

TEST(CpuExecutor, HostileSizesAreErrors) {
  auto team = std::move(*ThreadTeam::create({.threads = 1}));
  StepProgram program = fakeProgram({0}, 256);
  auto cache = std::move(*KvCache::create(program.groups, {.pages = {4}}));
  for (SlotSize slot :
       {SlotSize{.rows = ~u64(0)}, SlotSize{.constant = ~u64(0)},
        SlotSize{.rows = u64(1) << 50}}) {
    program.slots = {slot};
    auto executor =
        CpuExecutor::create(program, {.rows = 5}, *team, cache.get());
    ASSERT_FALSE(executor.has_value());
    EXPECT_EQ(executor.error().kind, ErrorKind::Exhausted);
  }
  program.slots = {{.rows = ~u64(0)}};
  EXPECT_EQ(CpuExecutor::arenaBytes(program, {.rows = 5}, 1), ~u64(0));
}

} // namespace

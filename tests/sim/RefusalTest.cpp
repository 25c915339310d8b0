// What a scheduler refuses at once, and says of it.

#include "runtime/schedule/Scheduler.h"
#include "tests/sim/SimExecutor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;

namespace {

struct Silent : RequestSink {
  u32 ends = 0;
  bool onToken(u32, const GeneratedToken &) override { return true; }
  void onEnd(u32, const End &, const RequestFacts &) override { ++ends; }
};

/// Room for 3 pages, 48 tokens, though the model's context is 100.
struct Refusals : testing::Test {
  std::vector<KvGroupInfo> groups = {{.pageBytes = SimExecutor::pageBytes}};
  std::unique_ptr<KvCache> cache =
      *KvCache::create(groups, {.pages = {3}, .poisonFreed = true});
  SimExecutor executor{{.rows = 8, .sequences = 4}, 24, *cache, false};
  std::unique_ptr<Scheduler> scheduler = *Scheduler::create(
      executor, *cache, {.context = 100, .maxRunning = 1, .maxWaiting = 1},
      [] { return Instant(1); });
  std::shared_ptr<Silent> sink = std::make_shared<Silent>();

  void expect(Request request, ErrorKind kind, const std::string &message) {
    auto id = scheduler->submit(1, std::move(request), sink);
    ASSERT_FALSE(id.has_value());
    EXPECT_EQ(id.error().kind, kind);
    EXPECT_EQ(id.error().message, message);
    EXPECT_FALSE(scheduler->hasWork());
  }
};

TEST_F(Refusals, WhatCanNeverFit) {
  EXPECT_EQ(scheduler->context(), 48u);
  expect({.prompt = std::vector<i32>(49, 1)}, ErrorKind::InvalidInput,
         "the prompt has 49 tokens; the KV cache has pages for 48");
  expect({}, ErrorKind::InvalidInput,
         "the prompt has no tokens, not even a begin token");
  expect({.prompt = {1, 24}}, ErrorKind::InvalidInput,
         "token 24 is not in the vocabulary of 24");
  expect({.prompt = {1, -1}}, ErrorKind::InvalidInput,
         "token -1 is not in the vocabulary of 24");
  expect({.prompt = {1}, .branches = 5}, ErrorKind::InvalidInput,
         "5 answers were asked for; 1 to 1 are possible");
  expect({.prompt = {1}, .branches = 0}, ErrorKind::InvalidInput,
         "0 answers were asked for; 1 to 1 are possible");
  expect({.prompt = {1}, .priority = 1001}, ErrorKind::InvalidInput,
         "priority 1001 is out of range; -1000 to 1000 are possible");
}

TEST_F(Refusals, AQueueThatIsFull) {
  for (u32 i = 0; i < 2; ++i)
    ASSERT_TRUE(scheduler->submit(i, {.prompt = {1}, .maxTokens = 1}, sink)
                    .has_value());
  auto third = scheduler->submit(2, {.prompt = {1}}, sink);
  ASSERT_FALSE(third.has_value());
  EXPECT_EQ(third.error().kind, ErrorKind::Exhausted);
  EXPECT_EQ(third.error().message,
            "2 answers are being made or waited for already");
  scheduler->step(); // One is done.
  EXPECT_TRUE(scheduler->submit(3, {.prompt = {1}}, sink).has_value());
}

TEST_F(Refusals, AFullContextEndsAnAnswer) {
  ASSERT_TRUE(scheduler->submit(1, {.prompt = std::vector<i32>(40, 1)}, sink)
                  .has_value());
  while (scheduler->hasWork())
    scheduler->step();
  EXPECT_EQ(scheduler->stats().tokens, 8u);
  EXPECT_EQ(sink->ends, 1u);
}

} // namespace

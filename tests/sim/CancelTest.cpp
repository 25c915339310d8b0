// What a cancelled answer leaves behind, in the model's cache and in its draft
// model's: pages that the prefix caches hold, and no other.

#include "runtime/schedule/Scheduler.h"
#include "tests/sim/SimProposer.h"

#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;

namespace {

constexpr u32 vocab = 24, mostTokens = 6;

struct Counting : RequestSink {
  u32 tokens = 0, ends = 0;
  bool onToken(u32, const GeneratedToken &) override { return ++tokens != 0; }
  void onEnd(u32, const End &end, const RequestFacts &) override {
    EXPECT_EQ(end.reason, EndReason::Cancelled);
    ++ends;
  }
};

/// Cancels in step `steps` of a request with `branches` answers, whose prompt
/// takes three steps.
void cancelAfter(u32 steps, u32 branches, u32 draftVocab) {
  std::vector<KvGroupInfo> groups = {
      {.pageBytes = SimExecutor::pageBytes},
      {.window = 20, .pageBytes = SimExecutor::pageBytes}};
  StepExecutor::Capacities capacities = {.rows = 32, .sequences = 4};
  auto cache =
      *KvCache::create(groups, {.pages = {60, 60}, .poisonFreed = true});
  SimExecutor executor(capacities, vocab, *cache, false);
  SimDraftModel draft(
      groups, {60, 60}, capacities, draftVocab,
      {.vocab = vocab, .context = 200, .mostTokens = mostTokens});
  auto scheduler = *Scheduler::create(
      executor, *cache,
      {.context = 200,
       .speculation = {.mostTokens = mostTokens, .adapts = false}},
      [] { return Instant(1); }, draft.proposer.get());
  auto sink = std::make_shared<Counting>();
  std::vector<i32> prompt;
  for (u32 i = 0; i < 70; ++i)
    prompt.push_back(i32(i * 7 % (vocab - 1)));
  ASSERT_TRUE(
      scheduler->submit(1, {.prompt = prompt, .branches = branches}, sink));
  for (u32 i = 0; i < steps; ++i)
    scheduler->step();
  if (steps != 0)
    EXPECT_GT(cache->pool(0).usedPages(), 0u);
  // A token that it does not know ends the drafts of a smaller one.
  if (steps > 7 && draftVocab >= vocab)
    EXPECT_GT(scheduler->stats().speculation.drafted, 0u);
  scheduler->cancel(1);
  EXPECT_EQ(sink->ends, branches);
  EXPECT_FALSE(scheduler->hasWork());
  EXPECT_TRUE(scheduler->isConsistent());
  for (u32 group = 0; group < groups.size(); ++group)
    EXPECT_EQ(cache->pool(group).usedPages(),
              scheduler->prefixes()->idlePages(group));
  EXPECT_EQ(draft.problem(true), "");
  // All of them can be had again.
  sink = std::make_shared<Counting>();
  ASSERT_TRUE(scheduler->submit(
      2, {.prompt = std::vector<i32>(180, 5), .maxTokens = ~0u}, sink));
  while (sink->tokens < 9 && scheduler->hasWork())
    scheduler->step();
  EXPECT_GE(sink->tokens, 9u);
  scheduler->cancelAll();
  EXPECT_EQ(draft.problem(true), "");
}

TEST(Cancel, NoPageStaysWithTheAnswer) {
  for (u32 branches : {1u, 3u})
    for (u32 draftVocab : {vocab, vocab + 3, vocab - 1})
      for (u32 steps : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 8u}) {
        SCOPED_TRACE(testing::Message()
                     << steps << " steps, " << branches << " answers, "
                     << draftVocab << " ids of the draft model");
        cancelAfter(steps, branches, draftVocab);
      }
}

} // namespace

// Draft lengths follow what was measured.

#include "runtime/speculate/DraftLength.h"
#include "runtime/speculate/Speculator.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::runtime;

namespace {

/// Steps as a CPU's: the weights are read once, then each row costs.
f64 stepTime(u32 rows) { return 1e-3 * (10 + 0.3 * rows); }
/// The same where rows cost as much as the first: nothing is shared.
f64 slowStepTime(u32 rows) { return 1e-3 * rows; }

StepTimes measured(f64 (*time)(u32)) {
  StepTimes times;
  for (u32 round = 0; round < 50; ++round)
    for (u32 rows : {1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 24, 32, 64, 128, 144})
      times.add(rows, time(rows));
  return times;
}

u32 lengthAlone(f64 acceptance, const StepTimes &times, f64 perToken = 0) {
  DraftChoice choice = {.acceptance = acceptance, .most = 8};
  chooseDraftLengths({&choice, 1}, 1, 1000, times, {.perToken = perToken});
  return choice.length;
}

/// By the formula: the length k with the largest (1 + a + ... + a^k) / time.
u32 bestLength(f64 acceptance, f64 (*time)(u32), f64 perToken) {
  u32 best = 0;
  f64 bestRate = 0, tokens = 0;
  for (u32 k = 0; k <= 8; ++k) {
    tokens += std::pow(acceptance, k);
    f64 rate = tokens / (time(1 + k) + k * perToken);
    if (rate > bestRate) {
      bestRate = rate;
      best = k;
    }
  }
  return best;
}

TEST(StepTimes, InterpolatesAndFollows) {
  StepTimes times = measured(stepTime);
  for (u32 rows : {1u, 7u, 10u, 20u, 40u, 100u, 200u})
    EXPECT_NEAR(times.of(rows), stepTime(rows), 0.03 * stepTime(rows)) << rows;
  // All become slower, though only two counts are measured.
  for (u32 i = 0; i < 60; ++i)
    times.add(1 + i % 2, 2 * stepTime(1 + i % 2));
  EXPECT_NEAR(times.of(1), 2 * stepTime(1), 0.02 * stepTime(1));
  EXPECT_GT(times.of(64), 1.35 * stepTime(64));
  // One stall is not believed.
  f64 before = times.of(2);
  times.add(2, 100);
  EXPECT_LT(times.of(2), 1.3 * before);
}

TEST(StepTimes, KnowsWhatIsFresh) {
  StepTimes times;
  EXPECT_EQ(times.ofKnown(1), 0);
  EXPECT_FALSE(times.isFresh(1, 10));
  times.add(1, 1);
  for (u32 i = 0; i < 10; ++i)
    times.add(5, 1);
  EXPECT_TRUE(times.isFresh(1, 10));
  times.add(5, 1);
  EXPECT_FALSE(times.isFresh(1, 10));
}

TEST(DraftLength, IsTheFormulasForOne) {
  StepTimes times = measured(stepTime);
  for (f64 acceptance : {0.0, 0.3, 0.6, 0.8, 0.9, 0.99})
    for (f64 perToken : {0.0, 0.5e-3, 2e-3, 20e-3})
      EXPECT_EQ(lengthAlone(acceptance, times, perToken),
                bestLength(acceptance, stepTime, perToken))
          << acceptance << " " << perToken;
  EXPECT_EQ(lengthAlone(0, times), 0u);
  EXPECT_EQ(lengthAlone(1, times), 8u);
  EXPECT_EQ(lengthAlone(0.9, measured(slowStepTime)), 0u);
}

TEST(DraftLength, SharesTheRowsByChance) {
  StepTimes times = measured(stepTime);
  std::vector<DraftChoice> choices = {{.acceptance = 0.9, .most = 8},
                                      {.acceptance = 0.1, .most = 8},
                                      {.acceptance = 0.9, .most = 2},
                                      {.acceptance = 0.9, .most = 0}};
  chooseDraftLengths(choices, 4, 1000, times, {});
  EXPECT_GT(choices[0].length, choices[1].length);
  EXPECT_EQ(choices[2].length, 2u);
  EXPECT_EQ(choices[3].length, 0u);
  chooseDraftLengths(choices, 4, 3, times, {});
  EXPECT_EQ(choices[0].length + choices[1].length + choices[2].length, 3u);
}

TEST(DraftLength, ShrinksWithTheBatch) {
  // From 16 rows on a row costs as much as the model's share of it.
  auto time = [](u32 rows) { return 1e-3 * (10 + std::max(rows, 16u)); };
  StepTimes times;
  for (u32 rows = 1; rows < 200; ++rows)
    times.add(rows, time(rows));
  u32 before = ~0u;
  for (u32 batch : {1u, 4u, 8u, 16u, 32u}) {
    std::vector<DraftChoice> choices(batch, {.acceptance = 0.6, .most = 8});
    chooseDraftLengths(choices, batch, 1000, times, {});
    u32 length = choices.front().length;
    EXPECT_LE(length, before) << batch;
    before = length;
    if (batch == 1)
      EXPECT_EQ(length, 8u);
  }
  EXPECT_EQ(before, 0u);
}

TEST(Acceptance, IsTheShareOfRightOnes) {
  Acceptance acceptance;
  EXPECT_NEAR(acceptance.of(0, 0.5, 2), 0.5, 1e-9);
  for (u32 i = 0; i < 200; ++i)
    acceptance.add(1, 4, true);
  EXPECT_NEAR(acceptance.of(1, 0.5, 2), 0.8, 0.02);
  EXPECT_NEAR(acceptance.of(0, 0.5, 2), 0.5, 1e-9); // Another certainty.
  for (u32 i = 0; i < 200; ++i)
    acceptance.add(1, 0, true);
  EXPECT_LT(acceptance.of(1, 0.5, 2), 0.06);
  acceptance.fade(1000);
  EXPECT_NEAR(acceptance.of(1, 0.5, 2), 0.5, 0.01);
}

/// Proposes ones; each costs time.
struct Ones : Proposer {
  u64 *time;
  u64 perToken;
  u64 asked = 0;
  Ones(u64 *time, u64 perToken) : time(time), perToken(perToken) {}
  std::unique_ptr<Sequence> start(std::string_view) override {
    return std::make_unique<Sequence>();
  }
  std::unique_ptr<Sequence> fork(const Sequence &) override {
    return std::make_unique<Sequence>();
  }
  void propose(std::span<Draft> drafts) override {
    for (Draft &draft : drafts) {
      draft.proposed.assign(draft.most, 1);
      *time += draft.most * perToken;
      asked += draft.most;
    }
  }
  bool isCostly() const override { return true; }
};

/// Drafted tokens per step in the last half of 2000 steps of one answer whose
/// drafts are right with a chance. Until then a token of them takes `perToken`
/// nanoseconds or, if that is given, `perTokenBefore`.
f64 draftedPerStep(f64 chance, u64 perToken, f64 (*stepTime)(u32),
                   u64 perTokenBefore = 0) {
  u64 time = 0;
  Ones proposer(&time, perToken);
  Speculator speculator(proposer, {}, 10, [&] { return time; });
  Speculator::Sequence sequence;
  auto sampler = Sampler::create({}, 10);
  std::vector<i32> tokens = {1};
  u64 state = 1, drafted = 0;
  for (u32 step = 0; step < 2000; ++step) {
    bool isBefore = step < 1000 && perTokenBefore != 0;
    proposer.perToken = isBefore ? perTokenBefore : perToken;
    Speculator::Job job = {.sequence = &sequence,
                           .salt = "",
                           .tokens = tokens,
                           .sampler = &*sampler,
                           .most = 100};
    speculator.propose({&job, 1}, 1, 100);
    u32 accepted = 0;
    bool isRejected = false;
    for (u32 i = 0; i < job.draft.size() && !isRejected; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      isRejected = f64(state >> 11) * 0x1p-53 >= chance;
      accepted += !isRejected;
    }
    if (!job.draft.empty())
      speculator.learn(sequence, u32(job.draft.size()), accepted, isRejected);
    u32 rows = 1 + u32(job.draft.size());
    time += u64(stepTime(rows) * 1e9);
    speculator.learnStep(rows, u64(stepTime(rows) * 1e9));
    tokens.resize(tokens.size() + accepted + 1, 1);
    drafted += step >= 1000 ? job.draft.size() : 0;
  }
  EXPECT_EQ(speculator.stats().drafts != 0, proposer.asked != 0);
  return f64(drafted) / 1000;
}

TEST(Speculator, FindsTheBestLength) {
  EXPECT_NEAR(draftedPerStep(0.8, 1'000'000, stepTime),
              bestLength(0.8, stepTime, 1e-3), 1.0);
  EXPECT_NEAR(draftedPerStep(0.95, 200'000, stepTime), 8, 1.0);
  // What was too dear once may be cheap by now.
  EXPECT_GT(draftedPerStep(0.95, 200'000, stepTime, 15'000'000), 2);
  // Down to (nearly) none: bad drafts, dear drafts, dear rows.
  EXPECT_LT(draftedPerStep(0.02, 1'000'000, stepTime), 0.1);
  EXPECT_LT(draftedPerStep(0.8, 30'000'000, stepTime), 0.1);
  EXPECT_LT(draftedPerStep(0.8, 10'000, slowStepTime), 0.1);
}

} // namespace

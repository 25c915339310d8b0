// Tokens come with the target's probabilities whatever is drafted: a target
// with p = (.5, .3, .2), a draft model with q = (.1, .1, .8).

#include "runtime/schedule/Scheduler.h"
#include "runtime/speculate/DraftModelProposer.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::runtime;

namespace {

constexpr u32 tokenCount = 3;

/// Says the same after any text.
class Constant : public StepExecutor {
public:
  explicit Constant(std::array<f64, tokenCount> probabilities) {
    for (u32 i = 0; i < tokenCount; ++i)
      row[i] = f32(std::log(probabilities[i]));
  }
  const Capacities &capacities() const override { return limits; }
  u32 vocab() const override { return tokenCount; }
  Result<void> step(std::span<const BatchSequence>) override { return {}; }
  const f32 *head(std::span<const u32> rows) override {
    logits.clear();
    for (size_t i = 0; i < rows.size(); ++i)
      logits.insert(logits.end(), row.begin(), row.end());
    return logits.data();
  }
  bool canPick() const override { return false; }
  std::span<const PickResult> pick(std::span<const u32>,
                                   std::span<const PickArgs>) override {
    return {};
  }

private:
  Capacities limits = {.rows = 64, .sequences = 8};
  std::array<f32, tokenCount> row;
  std::vector<f32> logits;
};

struct Counts : RequestSink {
  std::array<u32, tokenCount> of = {};
  std::vector<i32> tokens;
  bool onToken(u32, const GeneratedToken &token) override {
    ++of[u32(token.token)];
    tokens.push_back(token.token);
    return true;
  }
  void onEnd(u32, const End &, const RequestFacts &) override {}
};

struct Outcome {
  std::vector<std::shared_ptr<Counts>> counts;
  SchedulerStats stats;
};

/// All requests together, so that their rows share steps.
Outcome answers(const std::vector<Request> &requests, bool drafts) {
  std::vector<KvGroupInfo> groups = {{.pageBytes = 64}};
  auto cache = *KvCache::create(groups, {.pages = {8000}});
  auto draftCache = *KvCache::create(groups, {.pages = {8000}});
  Constant target({0.5, 0.3, 0.2}), draft({0.1, 0.1, 0.8});
  auto proposer = *DraftModelProposer::create(
      draft, *draftCache, {.vocab = tokenCount, .context = 20000});
  auto scheduler = *Scheduler::create(
      target, *cache,
      {.context = 20000, .speculation = {.mostTokens = 3, .adapts = false}},
      [] { return Instant(1); }, drafts ? proposer.get() : nullptr);
  Outcome run;
  for (u32 i = 0; i < requests.size(); ++i) {
    run.counts.push_back(std::make_shared<Counts>());
    EXPECT_TRUE(scheduler->submit(i, requests[i], run.counts.back()));
  }
  while (scheduler->hasWork())
    scheduler->step();
  run.stats = scheduler->stats();
  return run;
}

/// A request and what its tokens' probabilities are.
struct Case {
  const char *name;
  SamplerOptions sampling;
  std::array<f64, tokenCount> wanted;
};

std::array<f64, tokenCount> normalized(f64 a, f64 b, f64 c) {
  f64 sum = a + b + c;
  return {a / sum, b / sum, c / sum};
}

const std::vector<Case> cases = {
    {"plain", {.temperature = 1}, {0.5, 0.3, 0.2}},
    {"temperature 2",
     {.temperature = 2},
     normalized(std::sqrt(0.5), std::sqrt(0.3), std::sqrt(0.2))},
    {"temperature 0.5", {.temperature = 0.5}, normalized(0.25, 0.09, 0.04)},
    {"top-k", {.temperature = 1, .topK = 2}, {0.625, 0.375, 0}},
    {"top-p", {.temperature = 1, .topP = 0.7f}, {0.625, 0.375, 0}},
    {"min-p", {.temperature = 1, .minP = 0.5f}, {0.625, 0.375, 0}},
    {"bias",
     {.temperature = 1, .bias = {{2, std::log(4.0f)}}},
     normalized(0.5, 0.3, 0.8)},
    {"bias out", {.temperature = 1, .bias = {{0, -INFINITY}}}, {0, 0.6, 0.4}},
};

constexpr u32 tokensEach = 16000;

TEST(Distribution, IsTheTargetsAloneAndInMixedBatches) {
  std::vector<Request> requests;
  for (const Case &each : cases) {
    SamplerOptions sampling = each.sampling;
    sampling.seed = requests.size() + 11;
    requests.push_back(
        {.prompt = {0}, .sampling = sampling, .maxTokens = tokensEach});
  }
  Outcome mixed = answers(requests, true), plain = answers(requests, false);
  EXPECT_EQ(plain.stats.speculation.drafted, 0u);
  const SpeculationStats &drafts = mixed.stats.speculation;
  // With min-p the draft model knows but token 2, which is out: all are wrong.
  EXPECT_GT(drafts.accepted, drafts.drafted / 10);
  EXPECT_LT(drafts.accepted, drafts.drafted / 4);
  for (u32 i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].name);
    EXPECT_EQ(mixed.counts[i]->tokens, plain.counts[i]->tokens);
    EXPECT_EQ(answers({requests[i]}, true).counts[0]->tokens,
              plain.counts[i]->tokens);
    for (u32 token = 0; token < tokenCount; ++token) {
      f64 p = cases[i].wanted[token];
      f64 sigma = std::sqrt(p * (1 - p) / tokensEach);
      EXPECT_NEAR(f64(mixed.counts[i]->of[token]) / tokensEach, p,
                  4 * sigma + 1e-12)
          << "token " << token;
    }
  }
}

/// The two draw with the same noise, so they agree more often than by chance
/// (sum of p q = 0.24) and more often than a draft's argmax (0.2) would: both
/// draw i where e_i / p_i and e_i / q_i are least, which happens with
/// probability sum over i of 1 / sum over j of max(p_j / p_i, q_j / q_i).
TEST(Distribution, SharedNoiseRaisesAcceptance) {
  Request request = {.prompt = {0},
                     .sampling = {.temperature = 1, .seed = 5},
                     .maxTokens = tokensEach};
  SpeculationStats drafts = answers({request}, true).stats.speculation;
  std::array<f64, tokenCount> p = {0.5, 0.3, 0.2}, q = {0.1, 0.1, 0.8};
  f64 agree = 0;
  for (u32 i = 0; i < tokenCount; ++i) {
    f64 sum = 0;
    for (u32 j = 0; j < tokenCount; ++j)
      sum += std::max(p[j] / p[i], q[j] / q[i]);
    agree += 1 / sum;
  }
  // Of drafts of 3: a + a^2 + a^3 are accepted.
  f64 accepted = f64(drafts.accepted) / f64(drafts.drafts);
  EXPECT_NEAR(accepted, agree + agree * agree + agree * agree * agree, 0.03);
  EXPECT_GT(agree, 0.3);
}

} // namespace

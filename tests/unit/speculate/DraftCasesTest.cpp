// What can happen inside a draft, one case each, over a model that anybody can
// compute: after token t come the tokens of a table, with equal probability.

#include "runtime/sample/LogProbs.h"
#include "runtime/schedule/Scheduler.h"
#include "runtime/speculate/NgramProposer.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

using namespace lathe;
using namespace lathe::runtime;
using testing::ElementsAre;

namespace {

constexpr u32 tokenCount = 16;
using Table = std::map<i32, std::vector<i32>>;

class Bigram : public StepExecutor {
public:
  explicit Bigram(Table table) : table(std::move(table)) {}
  const Capacities &capacities() const override { return limits; }
  u32 vocab() const override { return tokenCount; }
  Result<void> step(std::span<const BatchSequence> batch) override {
    rows.clear();
    for (const BatchSequence &part : batch)
      rows.insert(rows.end(), part.tokens.begin(), part.tokens.end());
    return {};
  }
  const f32 *head(std::span<const u32> wanted) override {
    logits.assign(wanted.size() * tokenCount, -INFINITY);
    for (size_t i = 0; i < wanted.size(); ++i)
      for (i32 next : table[rows[wanted[i]]])
        logits[i * tokenCount + u32(next)] = 3;
    return logits.data();
  }
  bool canPick() const override { return false; }
  std::span<const PickResult> pick(std::span<const u32>,
                                   std::span<const PickArgs>) override {
    return {};
  }

private:
  Capacities limits = {.rows = 32, .sequences = 4};
  Table table;
  std::vector<i32> rows;
  std::vector<f32> logits;
};

/// Always proposes the same tokens.
struct Fixed : Proposer {
  std::vector<i32> tokens;
  explicit Fixed(std::vector<i32> tokens) : tokens(std::move(tokens)) {}
  std::unique_ptr<Sequence> start(std::string_view) override {
    return std::make_unique<Sequence>();
  }
  std::unique_ptr<Sequence> fork(const Sequence &) override {
    return std::make_unique<Sequence>();
  }
  void propose(std::span<Draft> drafts) override {
    for (Draft &draft : drafts)
      draft.proposed = tokens;
  }
};

struct Heard : RequestSink {
  std::vector<i32> tokens;
  std::vector<u32> positions;
  std::vector<f64> logProbs;
  std::vector<EndReason> ends;
  size_t endsAt = ~size_t(0);

  bool onToken(u32, const GeneratedToken &token) override {
    tokens.push_back(token.token);
    positions.push_back(token.position);
    if (!token.logits.empty())
      logProbs.push_back(LogProbs::of(token.logits)->of(u32(token.token)));
    return tokens.size() < endsAt;
  }
  void onEnd(u32, const End &end, const RequestFacts &) override {
    ends.push_back(end.reason);
  }
};

struct Outcome {
  std::shared_ptr<Heard> heard;
  SchedulerStats stats;
  u32 cachedPages;
};

Outcome answer(const Table &table, const Request &request, Proposer *proposer,
               u32 context = 200, size_t endsAt = ~size_t(0)) {
  std::vector<KvGroupInfo> groups = {{.pageBytes = 64}};
  auto cache = *KvCache::create(groups, {.pages = {50}, .poisonFreed = true});
  Bigram executor(table);
  auto scheduler = *Scheduler::create(
      executor, *cache,
      {.context = context, .speculation = {.mostTokens = 8, .adapts = false}},
      [] { return Instant(1); }, proposer);
  Outcome outcome = {std::make_shared<Heard>(), {}, 0};
  outcome.heard->endsAt = endsAt;
  EXPECT_TRUE(scheduler->submit(1, request, outcome.heard));
  while (scheduler->hasWork()) {
    scheduler->step();
    EXPECT_TRUE(scheduler->isConsistent());
  }
  outcome.stats = scheduler->stats();
  outcome.cachedPages = scheduler->prefixes()->nodes();
  return outcome;
}

/// 1 2 3 ... 9 1 2 ...
Table chain() {
  Table table;
  for (i32 i = 1; i <= 9; ++i)
    table[i] = {i % 9 + 1};
  return table;
}

TEST(DraftCases, TheFirstDraftedTokenIsChecked) {
  NgramProposer proposer; // Says 1 again.
  Outcome outcome =
      answer(chain(), {.prompt = {1, 1, 1}, .maxTokens = 6}, &proposer);
  EXPECT_THAT(outcome.heard->tokens, ElementsAre(2, 3, 4, 5, 6, 7));
  Fixed wrong({1, 1, 1});
  outcome = answer(chain(), {.prompt = {1, 1, 1}, .maxTokens = 6}, &wrong);
  EXPECT_THAT(outcome.heard->tokens, ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_EQ(outcome.stats.speculation.accepted, 0u);
  EXPECT_GT(outcome.stats.speculation.drafted, 0u);
}

TEST(DraftCases, ARightTokenBehindAWrongOneIsNotTaken) {
  Fixed proposer({9, 4, 5}); // After 2: 3 would be right.
  Outcome outcome = answer(chain(), {.prompt = {1}, .maxTokens = 5}, &proposer);
  EXPECT_THAT(outcome.heard->tokens, ElementsAre(2, 3, 4, 5, 6));
}

TEST(DraftCases, ALoopIsAcceptedWhole) {
  NgramProposer proposer;
  Request request = {.prompt = {1}, .maxTokens = 100};
  Outcome with = answer(chain(), request, &proposer),
          without = answer(chain(), request, nullptr);
  EXPECT_EQ(with.heard->tokens, without.heard->tokens);
  EXPECT_EQ(with.heard->positions, without.heard->positions);
  const SpeculationStats &drafts = with.stats.speculation;
  EXPECT_EQ(drafts.accepted, drafts.drafted);
  EXPECT_EQ(drafts.accepted + with.stats.steps, 100u);
  EXPECT_LT(with.stats.steps, 25u);
  // What was accepted is there for others.
  EXPECT_EQ(with.cachedPages, 100u / 16);
}

TEST(DraftCases, EndsInsideADraft) {
  Fixed proposer({3, 4, 5, 6, 7, 8, 9, 1});
  // Right after its first token, 2, an answer could take the whole draft.
  Request request = {.prompt = {1}};
  request.stopTokens = {5};
  Outcome outcome = answer(chain(), request, &proposer);
  EXPECT_THAT(outcome.heard->tokens, ElementsAre(2, 3, 4));
  EXPECT_THAT(outcome.heard->ends, ElementsAre(EndReason::Stop));
  EXPECT_EQ(outcome.stats.speculation.accepted, 2u);

  request.stopTokens = {};
  outcome = answer(chain(), request, &proposer, 200, 3);
  EXPECT_THAT(outcome.heard->tokens, ElementsAre(2, 3, 4));
  EXPECT_THAT(outcome.heard->ends, ElementsAre(EndReason::Stop));

  request.maxTokens = 4;
  outcome = answer(chain(), request, &proposer);
  EXPECT_THAT(outcome.heard->tokens, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(outcome.heard->ends, ElementsAre(EndReason::Length));
  EXPECT_EQ(outcome.stats.speculation.drafted, 2u);

  request.maxTokens = ~0u;
  outcome = answer(chain(), request, &proposer, 7);
  EXPECT_THAT(outcome.heard->tokens, ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_THAT(outcome.heard->ends, ElementsAre(EndReason::Length));
}

TEST(DraftCases, EachTokenHasItsLogProbability) {
  Table table = chain();
  table[3] = {4, 7}; // ln 0.5
  NgramProposer lookup;
  Fixed fixed({3, 4, 5, 6});
  for (f32 temperature : {0.0f, 1.0f}) {
    Request request = {.prompt = {1, 2, 3, 4, 5, 1},
                       .sampling = {.temperature = temperature, .seed = 3},
                       .maxTokens = 60,
                       .showLogits = true};
    Outcome without = answer(table, request, nullptr);
    ASSERT_EQ(without.heard->logProbs.size(), 60u);
    for (Proposer *proposer : {(Proposer *)&lookup, (Proposer *)&fixed}) {
      Outcome with = answer(table, request, proposer);
      EXPECT_GT(with.stats.speculation.accepted, 10u);
      EXPECT_EQ(with.heard->tokens, without.heard->tokens);
      EXPECT_EQ(with.heard->logProbs, without.heard->logProbs);
    }
    for (u32 i = 1; i < 60; ++i)
      EXPECT_NEAR(without.heard->logProbs[i],
                  without.heard->tokens[i - 1] == 3 ? -0.6931 : 0.0, 1e-4);
  }
}

TEST(DraftCases, PenaltiesSeeTheDraft) {
  Table table;
  for (i32 i = 1; i <= 9; ++i)
    table[i] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  Fixed proposer({2, 3, 4, 5});
  Request request = {
      .prompt = {1}, .sampling = {.repetitionPenalty = 2}, .maxTokens = 9};
  Outcome outcome = answer(table, request, &proposer);
  EXPECT_THAT(outcome.heard->tokens, ElementsAre(2, 3, 4, 5, 6, 7, 8, 9, 1));
}

} // namespace

// Drafts over real engines: ids and logits are those without any, bit for bit,
// whoever drafts how much and whoever shares the steps.

#include "runtime/schedule/DraftEngine.h"
#include "runtime/schedule/Scheduler.h"
#include "runtime/speculate/NgramProposer.h"
#include "tests/e2e/seeded/SeededModel.h"
#include "tests/e2e/support/Evaluate.h"
#include "tests/unit/support/TempDir.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;

namespace {

constexpr u32 context = 320, stepRows = 64, batchSize = 6, tokensEach = 64;

struct RandomProposer : Proposer {
  std::mt19937_64 random{1};
  u32 vocab;
  explicit RandomProposer(u32 vocab) : vocab(vocab) {}
  std::unique_ptr<Sequence> start(std::string_view) override {
    return std::make_unique<Sequence>();
  }
  std::unique_ptr<Sequence> fork(const Sequence &) override {
    return std::make_unique<Sequence>();
  }
  void propose(std::span<Draft> drafts) override {
    for (Draft &draft : drafts)
      for (u32 i = 0; i < draft.most; ++i)
        draft.proposed.push_back(i32(random() % vocab));
  }
};

/// Tokens and logits of one request's answers, in the order they came.
struct Heard : RequestSink {
  std::vector<i32> tokens;
  std::vector<f32> logits;
  u32 ends = 0;

  bool onToken(u32 branch, const GeneratedToken &token) override {
    EXPECT_EQ(branch, 0u);
    tokens.push_back(token.token);
    logits.insert(logits.end(), token.logits.begin(), token.logits.end());
    return true;
  }
  void onEnd(u32, const End &end, const RequestFacts &) override {
    EXPECT_TRUE(end.reason == EndReason::Length);
    ++ends;
  }
  bool operator==(const Heard &other) const {
    return tokens == other.tokens && logits.size() == other.logits.size() &&
           std::memcmp(logits.data(), other.logits.data(),
                       logits.size() * sizeof(f32)) == 0;
  }
};

/// Twenty prompts, greedy and sampled in all manners, a few with logits.
std::vector<Request> requestsFrom(const Golden &golden) {
  std::vector<Request> requests;
  for (u32 i = 0; i < 20; ++i) {
    Request request;
    u32 size = 3 + 17 * (i % 7);
    for (u32 j = 0; j < size; ++j)
      request.prompt.push_back(golden.tokens[(i * 13 + j) % 300]);
    request.maxTokens = tokensEach;
    request.showLogits = i % 3 == 0;
    SamplerOptions &sampling = request.sampling;
    sampling.seed = i;
    sampling.temperature = i % 2 == 0 ? 0.0f : 0.8f;
    sampling.topP = i % 8 == 1 ? 0.9f : 1.0f;
    sampling.topK = i % 8 == 3 ? 20 : 0;
    sampling.minP = i % 8 == 5 ? 0.05f : 0.0f;
    sampling.repetitionPenalty = i % 5 == 2 ? 1.2f : 1.0f;
    if (i % 5 == 3)
      sampling.bias = {{golden.tokens[0], 2.0f}};
    requests.push_back(std::move(request));
  }
  return requests;
}

class World {
public:
  explicit World(std::shared_ptr<const LoadedEngine> engine)
      : loaded(std::move(engine)), team(*ThreadTeam::create({.threads = 2})) {}

  std::vector<u32> pagesFor(std::span<const KvGroupInfo> groups) const {
    auto pages = KvCache::pagesForSequence(groups, context, stepRows);
    for (u32 &count : pages)
      count *= batchSize;
    return pages;
  }

  std::unique_ptr<DraftEngine> draftEngine(u32 mostTokens) {
    auto groups = DraftEngine::groupsOf(*loaded, mostTokens);
    return std::move(*DraftEngine::create(loaded, loaded->program().vocab,
                                          *team,
                                          {.pages = pagesFor(groups),
                                           .stepRows = stepRows,
                                           .sequences = batchSize,
                                           .mostTokens = mostTokens,
                                           .poisonFreed = true}));
  }

  /// `together` requests at a time.
  SchedulerStats run(const std::vector<Request> &requests, u32 together,
                     Proposer *proposer, const SpeculationOptions &speculation,
                     std::vector<std::shared_ptr<Heard>> &heard) {
    const StepProgram &program = loaded->program();
    auto cache =
        *KvCache::create(program.groups, {.pages = pagesFor(program.groups),
                                          .poisonFreed = true});
    auto executor = *CpuExecutor::create(
        program, {.rows = stepRows, .sequences = batchSize}, *team,
        cache.get());
    Instant time = 0;
    auto scheduler = *Scheduler::create(
        *executor, *cache,
        {.context = context,
         .maxRunning = together,
         .mixedRows = 13,
         .speculation = speculation},
        [&] { return ++time; }, proposer);
    for (u32 i = 0; i < requests.size(); ++i) {
      heard.push_back(std::make_shared<Heard>());
      EXPECT_TRUE(scheduler->submit(i, requests[i], heard.back()));
    }
    while (scheduler->hasWork()) {
      scheduler->step();
      EXPECT_TRUE(scheduler->isConsistent());
    }
    return scheduler->stats();
  }

private:
  std::shared_ptr<const LoadedEngine> loaded;
  std::unique_ptr<ThreadTeam> team;
};

class SpeculationTest : public testing::TestWithParam<std::string> {};

TEST_P(SpeculationTest, AnswersAreThoseWithoutDrafts) {
  TempDir temp;
  std::string path = temp.path("model.lathe");
  std::vector<std::string> isas = {"native"};
  ASSERT_TRUE(compileModel(seededPath(GetParam()), path, isas, "f16"));
  auto loaded = loadEngine(path, "");
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  World world(*loaded);
  std::vector<Request> requests = requestsFrom(readGolden(GetParam()));
  std::vector<std::shared_ptr<Heard>> wanted;
  world.run(requests, 1, nullptr, {}, wanted);

  RandomProposer random((*loaded)->program().vocab);
  NgramProposer lookup;
  for (u32 length : {0u, 1u, 2u, 4u, 8u}) {
    auto perfect = world.draftEngine(length);
    for (u32 together : {1u, batchSize})
      for (Proposer *proposer : {(Proposer *)&perfect->proposer(),
                                 (Proposer *)&random, (Proposer *)&lookup}) {
        SCOPED_TRACE(testing::Message() << "drafts of " << length << ", "
                                        << together << " together, "
                                        << (proposer == &random   ? "random"
                                            : proposer == &lookup ? "lookup"
                                                                  : "perfect"));
        std::vector<std::shared_ptr<Heard>> heard;
        SchedulerStats stats =
            world.run(requests, together, proposer,
                      {.mostTokens = length, .adapts = false}, heard);
        for (u32 i = 0; i < requests.size(); ++i) {
          EXPECT_EQ(heard[i]->ends, 1u);
          EXPECT_TRUE(*heard[i] == *wanted[i]) << "request " << i;
          EXPECT_EQ(heard[i]->logits.size(),
                    requests[i].showLogits
                        ? u64(tokensEach) * (*loaded)->program().vocab
                        : 0);
        }
        const SpeculationStats &drafts = stats.speculation;
        EXPECT_LE(drafts.accepted, drafts.drafted);
        EXPECT_EQ(drafts.drafted == 0, length == 0);
        if (proposer == &perfect->proposer())
          EXPECT_EQ(drafts.accepted, drafts.drafted);
        if (proposer == &random)
          EXPECT_LE(drafts.accepted, drafts.drafted / 10);
      }
  }
  // Lengths that change from step to step.
  auto perfect = world.draftEngine(8);
  std::vector<std::shared_ptr<Heard>> heard;
  world.run(requests, batchSize, &perfect->proposer(), {.mostTokens = 8},
            heard);
  for (u32 i = 0; i < requests.size(); ++i)
    EXPECT_TRUE(*heard[i] == *wanted[i]) << "request " << i;
}

// All keys in F32, windows beside all keys, and a quantized model whose tokens
// are picked without all logits.
INSTANTIATE_TEST_SUITE_P(Models, SpeculationTest,
                         testing::Values("llama-gqa", "gemma3-gqa",
                                         "format-q8-0"),
                         [](const auto &info) {
                           return info.param == "llama-gqa"     ? "f32"
                                  : info.param == "format-q8-0" ? "q8_0"
                                                                : "windows";
                         });

} // namespace

// The scheduler over a real engine: answers that share steps, pages and
// prefixes are those that a session gives to each alone, bit for bit.

#include "runtime/schedule/Scheduler.h"
#include "runtime/schedule/Generate.h"
#include "tests/e2e/seeded/SeededModel.h"
#include "tests/e2e/support/Evaluate.h"
#include "tests/unit/support/TempDir.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;

namespace {

/// Tokens and logits of one answer.
struct Heard {
  std::vector<i32> tokens;
  std::vector<f32> logits;
  bool operator==(const Heard &other) const {
    return tokens == other.tokens && logits.size() == other.logits.size() &&
           std::memcmp(logits.data(), other.logits.data(),
                       logits.size() * sizeof(f32)) == 0;
  }
};

struct Listener : RequestSink {
  std::vector<Heard> answers;
  u32 ends = 0;
  RequestFacts facts;

  bool onToken(u32 branch, const GeneratedToken &token) override {
    answers[branch].tokens.push_back(token.token);
    answers[branch].logits.insert(answers[branch].logits.end(),
                                  token.logits.begin(), token.logits.end());
    return true;
  }
  void onEnd(u32, const End &end, const RequestFacts &told) override {
    EXPECT_TRUE(end.reason == EndReason::Length) << int(end.reason);
    facts = told;
    ++ends;
  }
};

Heard alone(const std::shared_ptr<const LoadedEngine> &engine,
            const Request &request, u32 branch) {
  auto session = Session::create(engine, {.threads = 1, .context = 320});
  EXPECT_TRUE(session.has_value());
  Heard heard;
  GenerateOptions options = {.sampling = request.sampling,
                             .maxTokens = request.maxTokens,
                             .showLogits = request.showLogits};
  options.sampling.seed += branch;
  auto done = generate(
      **session, request.prompt, options, [&](const GeneratedToken &token) {
        heard.tokens.push_back(token.token);
        heard.logits.insert(heard.logits.end(), token.logits.begin(),
                            token.logits.end());
        return true;
      });
  EXPECT_TRUE(done.has_value());
  return heard;
}

/// Requests that start alike in groups, some greedy and some sampled.
std::vector<Request> requestsFrom(const Golden &golden) {
  std::vector<Request> requests;
  for (u32 i = 0; i < 12; ++i) {
    Request request;
    u32 shared = 20 + 37 * (i % 3);
    request.prompt.assign(golden.tokens.begin(),
                          golden.tokens.begin() + shared);
    for (u32 j = 0; j < 11 * i; ++j)
      request.prompt.push_back(golden.tokens[(i * 31 + j * 7) % 300]);
    request.maxTokens = 5 + 3 * i;
    request.branches = i % 5 == 4 ? 2 : 1;
    request.showLogits = i % 2 == 0;
    request.sampling.temperature = i % 3 == 1 ? 0.9f : 0.0f;
    request.sampling.topP = i % 6 == 1 ? 0.9f : 1.0f;
    request.sampling.seed = i;
    requests.push_back(std::move(request));
  }
  return requests;
}

class SchedulerTest : public testing::TestWithParam<std::string> {};

TEST_P(SchedulerTest, AnswersAreThoseOfEachRequestAlone) {
  Golden golden = readGolden(GetParam());
  TempDir temp;
  std::string path = temp.path("model.lathe");
  std::vector<std::string> isas = {"native"};
  ASSERT_TRUE(compileModel(seededPath(GetParam()), path, isas, "f16"));
  auto loaded = loadEngine(path, "");
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  const StepProgram &program = (*loaded)->program();
  std::vector<Request> requests = requestsFrom(golden);
  std::vector<std::vector<Heard>> wanted;
  for (const Request &request : requests)
    for (u32 branch = 0; branch < request.branches; ++branch) {
      if (branch == 0)
        wanted.emplace_back();
      wanted.back().push_back(alone(*loaded, request, branch));
    }

  // With all the pages that they want, and with hardly more than one needs.
  for (u32 room : {8u, 1u}) {
    SCOPED_TRACE("room for " + std::to_string(room));
    auto team = ThreadTeam::create({.threads = 2});
    ASSERT_TRUE(team.has_value());
    constexpr u32 stepRows = 48;
    auto pages = KvCache::pagesForSequence(program.groups, 320, stepRows);
    for (u32 &count : pages)
      count = count * room + 2;
    auto cache =
        KvCache::create(program.groups, {.pages = pages, .poisonFreed = true});
    ASSERT_TRUE(cache.has_value());
    auto executor = CpuExecutor::create(
        program, {.rows = stepRows, .sequences = 6}, **team, cache->get());
    ASSERT_TRUE(executor.has_value());
    Instant time = 0;
    auto scheduler = Scheduler::create(**executor, **cache,
                                       {.context = 320, .mixedRows = 13},
                                       [&] { return ++time; });
    ASSERT_TRUE(scheduler.has_value()) << scheduler.error().message;
    std::vector<std::shared_ptr<Listener>> listeners;
    for (const Request &request : requests) {
      listeners.push_back(std::make_shared<Listener>());
      listeners.back()->answers.resize(request.branches);
      auto queued =
          (*scheduler)->submit(listeners.size(), request, listeners.back());
      ASSERT_TRUE(queued.has_value()) << queued.error().message;
      (*scheduler)->step();
    }
    while ((*scheduler)->hasWork()) {
      (*scheduler)->step();
      ASSERT_TRUE((*scheduler)->isConsistent());
    }
    for (u32 i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(listeners[i]->ends, requests[i].branches);
      for (u32 branch = 0; branch < requests[i].branches; ++branch)
        EXPECT_TRUE(listeners[i]->answers[branch] == wanted[i][branch])
            << "request " << i << " answer " << branch;
    }
    SchedulerStats stats = (*scheduler)->stats();
    EXPECT_GT(stats.cachedTokens, 100u);
    EXPECT_EQ(stats.preemptions != 0, room == 1) << stats.preemptions;
    EXPECT_LT(stats.steps, stats.tokens);
  }
}

// All keys, and windows beside all keys.
INSTANTIATE_TEST_SUITE_P(Models, SchedulerTest,
                         testing::Values("format-q8-0", "gemma3-gqa"),
                         [](const auto &info) {
                           return info.param.starts_with("gemma") ? "windows"
                                                                  : "full";
                         });

} // namespace

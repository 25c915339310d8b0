// The serving engine: many threads ask, each gets the answer that it would get
// alone; cancelled requests leave nothing behind.

#include "runtime/schedule/Generate.h"
#include "runtime/schedule/ServingEngine.h"
#include "tests/e2e/seeded/SeededModel.h"
#include "tests/e2e/support/Evaluate.h"
#include "tests/unit/support/TempDir.h"

#include <future>
#include <gtest/gtest.h>
#include <thread>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;

namespace {

/// Hears one answer; wait() returns when it has ended.
class Listener : public RequestSink {
public:
  bool onToken(u32, const GeneratedToken &token) override {
    tokens.push_back(token.token);
    if (tokens.size() == 1)
      first.set_value();
    return true;
  }
  void onEnd(u32, const End &end, const RequestFacts &) override {
    ended.set_value(end.reason);
  }
  void waitForToken() { first.get_future().wait(); }
  EndReason wait() { return ended.get_future().get(); }

  std::vector<i32> tokens;

private:
  std::promise<void> first;
  std::promise<EndReason> ended;
};

class ServingTest : public testing::Test {
protected:
  void SetUp() override {
    golden = readGolden("format-q8-0");
    std::vector<std::string> isas = {"native"};
    ASSERT_TRUE(compileModel(seededPath("format-q8-0"), temp.path("m.lathe"),
                             isas, "f16"));
    auto loaded = loadEngine(temp.path("m.lathe"), "");
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    engine = *loaded;
  }

  std::unique_ptr<ServingEngine> serve(ServingOptions options) {
    options.threads = 2;
    options.stepRows = 64;
    options.context = 320;
    options.poisonFreed = true;
    auto serving = ServingEngine::create(engine, options);
    EXPECT_TRUE(serving.has_value()) << serving.error().message;
    return std::move(*serving);
  }

  std::vector<DraftWishes> everyDraft() const {
    SpeculationOptions always = {.mostTokens = 5, .adapts = false};
    return {{},
            {.byLookup = true, .speculation = always},
            {.model = engine, .speculation = always},
            {.model = engine}};
  }

  Request request(u32 number, u32 answer) const {
    u32 length = 5 + number * 17 % 120;
    return {
        .prompt = {golden.tokens.begin(), golden.tokens.begin() + length},
        .sampling = {.temperature = number % 2 ? 0.8f : 0.0f, .seed = number},
        .maxTokens = answer};
  }

  TempDir temp;
  Golden golden;
  std::shared_ptr<const LoadedEngine> engine;
};

/// With drafts of any origin and without.
TEST_F(ServingTest, ThreadsGetTheAnswersOfEachAlone) {
  constexpr u32 clients = 4, each = 6, answer = 24;
  auto session = Session::create(engine, {.threads = 1, .context = 320});
  ASSERT_TRUE(session.has_value());
  std::vector<std::vector<i32>> wanted;
  for (u32 i = 0; i < clients * each; ++i) {
    Request one = request(i, answer);
    auto made = generate(**session, one.prompt,
                         {.sampling = one.sampling, .maxTokens = answer});
    ASSERT_TRUE(made.has_value());
    wanted.push_back(made->tokens);
  }
  for (const DraftWishes &drafts : everyDraft()) {
    SCOPED_TRACE(drafts.model      ? "a draft model"
                 : drafts.byLookup ? "lookup"
                                   : "no drafts");
    auto serving = serve({.maxRunning = 6, .drafts = drafts});
    std::vector<std::thread> threads;
    for (u32 client = 0; client < clients; ++client)
      threads.emplace_back([&, client] {
        for (u32 i = client * each; i < (client + 1) * each; ++i) {
          auto listener = std::make_shared<Listener>();
          auto id = serving->submit(request(i, answer), listener);
          ASSERT_TRUE(id.has_value()) << id.error().message;
          if (i % 3 == 2) { // Somebody gives up at times.
            if (i % 2 == 0)
              listener->waitForToken();
            serving->cancel(*id);
            listener->wait();
          } else {
            EXPECT_EQ(listener->wait(), EndReason::Length);
            EXPECT_EQ(listener->tokens, wanted[i]) << i;
          }
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    SpeculationStats stats = serving->stats().scheduler.speculation;
    EXPECT_LE(stats.accepted, stats.drafted);
    // The model itself: rejected is only what is behind an end.
    if (drafts.model && !drafts.speculation.adapts)
      EXPECT_GT(stats.accepted, stats.drafted / 10 * 9);
  }
}

TEST_F(ServingTest, ACancelledRequestFreesItsPages) {
  for (const DraftWishes &drafts : everyDraft()) {
    auto serving = serve({.maxRunning = 2, .drafts = drafts});
    auto listener = std::make_shared<Listener>();
    auto id = serving->submit(request(1, ~0u), listener);
    ASSERT_TRUE(id.has_value());
    listener->waitForToken();
    serving->cancel(*id);
    EXPECT_EQ(listener->wait(), EndReason::Cancelled);
    // The pages that only the prefix cache holds count as free.
    auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    ServingStats stats = serving->stats();
    while ((stats.scheduler.running != 0 || stats.kvUsage != 0) &&
           std::chrono::steady_clock::now() < soon)
      stats = serving->stats();
    EXPECT_EQ(stats.scheduler.running, 0u);
    EXPECT_EQ(stats.kvUsage, 0);
  }
}

TEST_F(ServingTest, AFullQueueRefuses) {
  auto serving = serve({.maxRunning = 1, .maxWaiting = 1});
  std::vector<std::shared_ptr<Listener>> listeners;
  std::optional<Error> error;
  for (u32 i = 0; i < 3; ++i) {
    listeners.push_back(std::make_shared<Listener>());
    auto id = serving->submit(request(i, ~0u), listeners.back());
    if (!id)
      error = id.error();
    else if (i == 0)
      listeners.back()->waitForToken();
  }
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->kind, ErrorKind::Exhausted);
  serving->stop();
  EXPECT_EQ(listeners[0]->wait(), EndReason::Cancelled);
  EXPECT_EQ(listeners[1]->wait(), EndReason::Cancelled);
  auto late = serving->submit(request(0, 1), std::make_shared<Listener>());
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().message, "the engine is being stopped");
}

} // namespace

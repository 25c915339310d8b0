// Answers that a serving engine made and a recorder kept are made again by
// another one, with another batch and other threads, bit for bit.

#include "runtime/serve/Replay.h"
#include "runtime/serve/Fingerprint.h"
#include "runtime/serve/Recorder.h"
#include "tests/e2e/seeded/SeededModel.h"
#include "tests/e2e/support/Evaluate.h"
#include "tests/unit/support/TempDir.h"

#include <condition_variable>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::runtime::serve;
using namespace lathe::tests;
using testing::HasSubstr;

namespace {

/// Counts down the answers that are still to end.
struct Pending {
  std::mutex mutex;
  std::condition_variable changed;
  u32 answers = 0;

  void end() {
    std::lock_guard lock(mutex);
    --answers;
    changed.notify_one();
  }
  void waitForAll() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return answers == 0; });
  }
};

/// Tells an observer what a sink hears. Ends an answer as a stop string would,
/// with its `stopAfter`-th token; 0: never.
struct Forward : RequestSink {
  std::shared_ptr<RequestObserver> observer;
  Pending &pending;
  u32 stopAfter, tokens = 0;

  Forward(std::shared_ptr<RequestObserver> observer, Pending &pending,
          u32 stopAfter)
      : observer(std::move(observer)), pending(pending), stopAfter(stopAfter) {}

  bool onToken(u32 branch, const GeneratedToken &token) override {
    observer->onToken(branch, token.token, ServingEngine::now());
    return ++tokens != stopAfter;
  }
  void onEnd(u32 branch, const End &end, const RequestFacts &facts) override {
    observer->onEnd(branch, end, facts);
    pending.end();
  }
};

std::unique_ptr<ServingEngine>
serveWith(const std::shared_ptr<const LoadedEngine> &engine, u32 threads,
          u32 batch) {
  auto made = ServingEngine::create(engine, {.threads = threads,
                                             .context = 320,
                                             .maxRunning = batch,
                                             .stepRows = 64,
                                             .poisonFreed = true});
  EXPECT_TRUE(made.has_value()) << made.error().message;
  return std::move(*made);
}

class ReplayTest : public testing::Test {
protected:
  void SetUp() override {
    std::string path = dir.path("model.lathe");
    std::vector<std::string> isas = {"native"};
    auto compiled = compileModel(seededPath("llama-gqa"), path, isas, "f16");
    ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
    auto loaded = loadEngine(path, "");
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    engine = *loaded;
    target = std::string(engine->targetName());
    record();
    auto read = readRecording(file);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    recording = *read;
  }

  /// Greedy and sampled requests with all that an answer depends on, one of
  /// which is cancelled.
  void record() {
    Golden golden = readGolden("llama-gqa");
    auto recorder = *Recorder::open({.path = file,
                                     .model = "llama-gqa",
                                     .engineHash = engineHash(engine->engine()),
                                     .target = target});
    Pending pending;
    auto serving = serveWith(engine, 2, 6);
    std::vector<std::string> stops = {"stop"};
    for (u32 i = 0; i < 14; ++i) {
      Request request;
      request.prompt.assign(golden.tokens.begin(),
                            golden.tokens.begin() + 10 + 17 * (i % 5));
      request.maxTokens = 10 + 2 * i;
      request.branches = i % 4 == 3 ? 3 : 1;
      request.sampling.temperature = i % 3 == 0 ? 0.0f : 0.8f;
      request.sampling.topP = i % 3 == 1 ? 0.9f : 1.0f;
      request.sampling.repetitionPenalty = i % 2 == 0 ? 1.2f : 1.0f;
      request.sampling.bias = {{i32(i), -4.5f}};
      request.sampling.seed = 1000 + i;
      if (i % 4 == 2) // Some id is likely to come.
        for (i32 id = 0; id < i32(golden.vocabulary); id += 20)
          request.stopTokens.push_back(id);
      bool hasStops = i % 6 == 5;
      if (i == 7)
        request.maxTokens = 200;
      pending.answers += request.branches;
      auto sink = std::make_shared<Forward>(
          recorder->onRequest(
              {.callId = "call-" + std::to_string(i),
               .endpoint = "/v1/completions",
               .request = request,
               .promptText = {},
               .stops = hasStops ? stops : std::vector<std::string>()}),
          pending, hasStops ? 4 : 0);
      auto id = serving->submit(request, sink);
      ASSERT_TRUE(id.has_value()) << id.error().message;
      if (i == 7)
        serving->cancel(*id);
    }
    pending.waitForAll();
  }

  TempDir dir;
  std::string file = dir.path("answers.jsonl"), target;
  std::shared_ptr<const LoadedEngine> engine;
  Recording recording;
};

TEST_F(ReplayTest, AnswersAreTheSameWithAnotherBatchAndOtherThreads) {
  EXPECT_TRUE(
      checkRecordedWith(recording, engineHash(engine->engine()), target));
  std::array<u32, 5> ends = {};
  u64 tokens = 0;
  for (const auto &entry : recording.answers) {
    ++ends[u32(entry.answer.finish)];
    tokens += entry.answer.answer.size();
  }
  EXPECT_GT(ends[u32(EndReason::Stop)], 2u);
  EXPECT_GT(ends[u32(EndReason::Length)], 4u);
  EXPECT_EQ(ends[u32(EndReason::Cancelled)], 3u);
  for (auto [threads, batch] : {std::pair(1, 1), {1, 3}, {3, 16}}) {
    SCOPED_TRACE(batch);
    auto serving = serveWith(engine, u32(threads), u32(batch));
    auto report = replay(*serving, recording);
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_EQ(report->answers + report->unchecked, recording.answers.size());
    EXPECT_EQ(report->tokens, tokens);
    EXPECT_EQ(report->different, 0u);
    EXPECT_FALSE(report->first.has_value());
  }
}

TEST_F(ReplayTest, TheFirstDifferingTokenIsNamed) {
  // The last answer as well: the first in the file's order is named.
  i32 right = 0;
  u64 changed = 0;
  for (u64 i = 1; i < recording.answers.size(); ++i)
    if (auto &answer = recording.answers[i].answer; answer.answer.size() > 6) {
      right = changed == 0 ? answer.answer[5] : right;
      changed = changed == 0 ? i : changed;
      answer.answer[5] = answer.answer[5] == 1 ? 2 : 1;
    }
  auto serving = serveWith(engine, 2, 4);
  auto report = replay(*serving, recording);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  ASSERT_TRUE(report->first.has_value());
  EXPECT_GT(report->different, 3u);
  const auto &entry = recording.answers[changed];
  EXPECT_EQ(report->first->line, entry.line);
  EXPECT_EQ(report->first->callId, entry.answer.callId);
  EXPECT_EQ(report->first->branch, entry.answer.branch);
  EXPECT_EQ(report->first->index, 5u);
  EXPECT_EQ(report->first->position, entry.answer.prompt.size() + 5);
  EXPECT_EQ(report->first->expected, entry.answer.answer[5]);
  EXPECT_EQ(report->first->got, right);
}

TEST_F(ReplayTest, AnEndTooEarlyOrTooLateDiffers) {
  auto isStop = [](const auto &entry) {
    return entry.answer.finish == EndReason::Stop &&
           entry.answer.stopStrings == 0 && entry.answer.answer.size() > 1;
  };
  auto stopped = std::ranges::find_if(recording.answers, isStop);
  ASSERT_NE(stopped, recording.answers.end());
  Recording one{.answers = {*stopped}, .tornLines = {}};
  RecordedAnswer &answer = one.answers[0].answer;
  auto serving = serveWith(engine, 1, 4);

  answer.answer.push_back(3);
  auto report = replay(*serving, one);
  ASSERT_TRUE(report.has_value() && report->first);
  EXPECT_EQ(report->first->expected, 3);
  EXPECT_EQ(report->first->got, std::nullopt);

  answer.answer.resize(answer.answer.size() - 2);
  report = replay(*serving, one);
  ASSERT_TRUE(report.has_value() && report->first);
  EXPECT_EQ(report->first->expected, std::nullopt);
  EXPECT_EQ(report->first->got, stopped->answer.answer.back());
}

TEST_F(ReplayTest, AnotherEngineLayerOrContextIsRefused) {
  std::string hash = engineHash(engine->engine());
  auto other = checkRecordedWith(recording, std::string(64, '0'), target);
  ASSERT_FALSE(other.has_value());
  EXPECT_THAT(other.error().message, HasSubstr(hash.substr(0, 16)));
  EXPECT_THAT(other.error().message, HasSubstr("line 1"));
  auto layer = checkRecordedWith(recording, hash, "cpu:other");
  ASSERT_FALSE(layer.has_value());
  EXPECT_THAT(layer.error().message, HasSubstr("recorded on " + target));

  auto entry = std::ranges::find_if(recording.answers, [](const auto &entry) {
    return !entry.answer.answer.empty();
  });
  entry->answer.prompt.resize(400, 1);
  auto serving = serveWith(engine, 1, 4);
  auto report = replay(*serving, recording);
  ASSERT_FALSE(report.has_value());
  EXPECT_THAT(report.error().message,
              HasSubstr(fmt::format("line {}: ", entry->line)));
}

TEST_F(ReplayTest, AnInterruptEndsItEarly) {
  std::atomic<bool> interrupt = true;
  auto serving = serveWith(engine, 1, 4);
  auto report = replay(*serving, recording, {.interrupt = &interrupt});
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->wasInterrupted);
  EXPECT_EQ(report->answers, 0u);
}

} // namespace

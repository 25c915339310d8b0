#include "runtime/schedule/Session.h"
#include "runtime/schedule/Generate.h"
#include "tests/unit/device/FakeProgram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;
using testing::HasSubstr;

namespace {

std::vector<i32> randomTokens(size_t count, u32 seed) {
  std::mt19937 random(seed);
  std::vector<i32> tokens(count);
  for (i32 &token : tokens)
    token = i32(random() % fakeVocab);
  return tokens;
}

std::unique_ptr<Session> makeSession(StepProgram program,
                                     SessionOptions options = {}) {
  options.poisonFreed = true;
  if (options.threads == 0)
    options.threads = 2;
  auto session = Session::create(std::move(program), options);
  EXPECT_TRUE(session.has_value()) << session.error().message;
  return std::move(*session);
}

/// The logits after `tokens` by the fake model's definition.
std::vector<f32> wantedLogits(std::span<const i32> tokens) {
  auto state = fakeState(tokens, fakeWindows);
  std::vector<f32> logits;
  for (u32 v = 0; v < fakeVocab; ++v)
    logits.push_back(fakeLogit(state.data(), v));
  return logits;
}

void expectLogits(std::span<const f32> got, std::span<const i32> tokens) {
  ASSERT_EQ(std::vector<f32>(got.begin(), got.end()), wantedLogits(tokens));
}

TEST(Session, LogitsDependOnTheTokensNotOnTheSteps) {
  auto tokens = randomTokens(200, 1);
  for (u32 chunk : {1u, 7u, 64u, 512u})
    for (bool kv : {true, false}) {
      auto session =
          makeSession(fakeProgram({0, 40}, 256, kv), {.chunk = chunk});
      ASSERT_TRUE(session->append(std::span(tokens).first(100)).has_value());
      expectLogits(session->logits(), std::span(tokens).first(100));
      for (u32 i = 100; i < 200; ++i) {
        ASSERT_TRUE(session->append({&tokens[i], 1}).has_value());
        expectLogits(session->logits(), std::span(tokens).first(i + 1));
      }
      EXPECT_EQ(session->tokens(), tokens);
    }
}

TEST(Session, VisitorSeesTheRowsItAskedFor) {
  auto tokens = randomTokens(150, 2);
  for (u32 chunk : {16u, 512u}) {
    auto session = makeSession(fakeProgram({0}, 256), {.chunk = chunk});
    ASSERT_TRUE(session->append(std::span(tokens).first(10)).has_value());
    u32 next = 10 + 33;
    ASSERT_TRUE(session
                    ->append(std::span(tokens).subspan(10), 33,
                             [&](u32 position, std::span<const f32> logits) {
                               EXPECT_EQ(position, next++);
                               expectLogits(logits, std::span(tokens).first(
                                                        position + 1));
                             })
                    .has_value());
    EXPECT_EQ(next, 150u);
    expectLogits(session->logits(), tokens);
  }
}

TEST(Session, TruncateGoesBackAnywhere) {
  auto tokens = randomTokens(200, 3);
  for (bool kv : {true, false}) {
    auto session = makeSession(fakeProgram({0, 40}, 256, kv), {.chunk = 32});
    ASSERT_TRUE(session->append(tokens).has_value());
    for (u32 length : {200u, 199u, 190u, 100u, 5u}) {
      ASSERT_TRUE(session->truncate(length).has_value());
      ASSERT_EQ(session->tokens().size(), length);
      expectLogits(session->logits(), std::span(tokens).first(length));
    }
    ASSERT_TRUE(session->truncate(0).has_value());
    EXPECT_TRUE(session->tokens().empty());
    ASSERT_TRUE(session->append(std::span(tokens).first(256 - 56)).has_value());
  }
}

// B28: sent again, at least the last token is evaluated, once.
TEST(Session, ReplaceByKeepsTheCommonPrefix) {
  auto tokens = randomTokens(120, 4);
  auto session = makeSession(fakeProgram({0}, 256), {.chunk = 32});
  EXPECT_EQ(session->replaceBy(std::span(tokens).first(60)).value(), 60u);
  for (u32 length : {33u, 32u, 31u, 17u, 16u, 15u})
    for (int again = 0; again < 3; ++again) {
      auto prompt = std::span(tokens).first(length);
      EXPECT_EQ(session->replaceBy(prompt).value(), 1u);
      expectLogits(session->logits(), prompt);
    }
  EXPECT_EQ(session->replaceBy(tokens).value(), 120u - 15);
  auto other = tokens;
  other[50] = (other[50] + 1) % i32(fakeVocab);
  EXPECT_EQ(session->replaceBy(other).value(), 70u);
  expectLogits(session->logits(), other);
}

TEST(Session, ReplaceByStartsAfreshWhereAWindowHasPassed) {
  auto tokens = randomTokens(200, 5);
  auto session = makeSession(fakeProgram({40}, 256), {.chunk = 16});
  ASSERT_TRUE(session->append(tokens).has_value());
  EXPECT_EQ(session->replaceBy(std::span(tokens).first(199)).value(), 1u);
  EXPECT_EQ(session->replaceBy(std::span(tokens).first(100)).value(), 100u);
  expectLogits(session->logits(), std::span(tokens).first(100));
}

TEST(Session, OverflowAndBadIdsChangeNothing) {
  auto tokens = randomTokens(257, 6);
  auto session = makeSession(fakeProgram({0}, 256), {.chunk = 32});
  auto result = session->append(tokens);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message,
            "257 tokens do not fit the context of 256 tokens");
  EXPECT_TRUE(session->tokens().empty());
  ASSERT_TRUE(session->append(std::span(tokens).first(256)).has_value());
  EXPECT_FALSE(session->append(std::span(tokens).first(1)).has_value());
  auto replaced = session->replaceBy(tokens);
  ASSERT_FALSE(replaced.has_value());
  EXPECT_THAT(replaced.error().message, HasSubstr("257 tokens do not fit"));
  tokens.resize(100);
  tokens[99] = fakeVocab;
  EXPECT_THAT(session->replaceBy(tokens).error().message,
              HasSubstr("token id 97 is not in the vocabulary"));
  EXPECT_EQ(session->tokens().size(), 256u);
  tokens[99] = -5;
  ASSERT_TRUE(session->truncate(10).has_value());
  EXPECT_THAT(session->append(tokens).error().message,
              HasSubstr("token id -5 is not in the vocabulary"));
  EXPECT_EQ(session->tokens().size(), 10u);
}

// B50: numbers and the flag to lower, or a smaller context with a notice.
TEST(Session, TooLittleMemoryIsSaid) {
  StepProgram program = fakeProgram({0}, 1 << 20);
  auto session = Session::create(
      program, {.threads = 1, .context = 1 << 20, .kvBytes = 100000});
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().kind, ErrorKind::Exhausted);
  EXPECT_EQ(session.error().message,
            "the KV cache of 1048576 tokens needs 8.0 MiB (8388736 bytes), but "
            "only 97.7 KiB (100000 bytes, kvBytes) are available; lower "
            "--context or raise kvBytes");

  auto smaller = makeSession(program, {.kvBytes = 100000});
  EXPECT_EQ(smaller->context(), 12288u); // 780 pages, in steps of 256 tokens
  EXPECT_THAT(smaller->notice(),
              HasSubstr("context lowered from 1048576 to 12288 tokens"));
  EXPECT_THAT(smaller->notice(), HasSubstr("--context"));
  auto tokens = randomTokens(3000, 7);
  ASSERT_TRUE(smaller->append(tokens).has_value());
  expectLogits(smaller->logits(), tokens);

  auto tiny = Session::create(program, {.threads = 1, .kvBytes = 100});
  ASSERT_FALSE(tiny.has_value());
  EXPECT_THAT(tiny.error().message, HasSubstr("256 tokens needs"));

  program.groups[0].pageBytes = u64(1) << 40; // no machine has this
  auto huge = Session::create(program, {.threads = 1, .context = 1 << 20});
  ASSERT_FALSE(huge.has_value());
  EXPECT_EQ(huge.error().kind, ErrorKind::Exhausted);
  EXPECT_THAT(huge.error().message, HasSubstr("lower --context"));
  EXPECT_THAT(huge.error().message, HasSubstr(") are available"));
}

TEST(Session, BadOptionsAreErrors) {
  StepProgram program = fakeProgram({0}, 256);
  EXPECT_THAT(Session::create(program, {.context = 300}).error().message,
              HasSubstr("this engine's is 256; lower --context"));
  EXPECT_THAT(Session::create(program, {.chunk = 0}).error().message,
              HasSubstr("--chunk takes 1 to"));
  EXPECT_THAT(Session::create(program, {.threads = 5000}).error().message,
              HasSubstr("--threads takes 1 to"));
  auto small = makeSession(program, {.context = 5});
  EXPECT_EQ(small->context(), 5u);
  auto tokens = randomTokens(6, 8);
  EXPECT_TRUE(small->append(std::span(tokens).first(5)).has_value());
  EXPECT_FALSE(small->append(std::span(tokens).last(1)).has_value());
}

/// An entry point `pick` of the fake model.
struct FakePick {
  static inline u32 calls;
  static inline bool leavesAll; ///< To the definition.
  static inline u32 exactGroups;

  static void run(const StepArgs *args, u32 thread, u32) {
    if (thread != 0)
      return;
    ++calls;
    PickScratch scratch;
    for (u32 row = 0; row < args->headRows; ++row) {
      std::vector<f32> logits(fakeVocab);
      for (u32 token = 0; token < fakeVocab; ++token)
        logits[token] = fakeLogit(args->headInput + row * fakeHidden, token);
      args->picked[row] =
          pickFromLogits(logits, args->pickArgs[row], scratch).value();
      if (leavesAll)
        args->picked[row].token = -1;
      args->picked[row].exactGroups = exactGroups;
      args->logits[0] = NAN; // scratch
    }
  }

  static StepProgram program() {
    StepProgram program = fakeProgram({0}, 256);
    program.pick = run;
    calls = 0;
    leavesAll = false;
    exactGroups = 1;
    return program;
  }
};

TEST(Session, PicksAsTheLogitsSay) {
  auto tokens = randomTokens(40, 3);
  PickScratch scratch;
  PickArgs args = {.temperature = 1, .position = 7, .seed = 3};
  for (bool leavesAll : {false, true}) {
    auto session = makeSession(FakePick::program(), {.chunk = 16});
    FakePick::leavesAll = leavesAll;
    for (size_t length = 1; length <= tokens.size(); ++length) {
      auto done = session->append(std::span(tokens).subspan(length - 1, 1));
      ASSERT_TRUE(done.has_value());
      auto logits = wantedLogits(std::span(tokens).first(length));
      auto want = pickFromLogits(logits, args, scratch).value();
      auto got = session->pick(args).value();
      EXPECT_EQ(got.token, want.token);
      EXPECT_EQ(got.logit, want.logit);
      // The logits are still to be had.
      expectLogits(session->logits(), std::span(tokens).first(length));
      EXPECT_EQ(session->pick(args).value().token, want.token);
    }
    EXPECT_EQ(FakePick::calls, 40u); // not where the logits are there already
  }
  auto session = makeSession(FakePick::program(), {});
  ASSERT_TRUE(session->append(tokens).has_value());
  args.topK = maxPickTopK + 1;
  EXPECT_TRUE(session->pick(args).has_value());
  EXPECT_EQ(FakePick::calls, 0u);
}

TEST(Session, StopsPickingWhereItIsSlow) {
  auto session = makeSession(FakePick::program(), {});
  FakePick::exactGroups = 5; // of 7
  for (i32 token = 0; token < 34; ++token) {
    ASSERT_TRUE(session->append({&token, 1}).has_value());
    ASSERT_TRUE(session->pick({}).has_value());
  }
  EXPECT_EQ(FakePick::calls, 2u); // each followed by 16 others
  FakePick::exactGroups = 1;
  for (i32 token = 0; token < 10; ++token) {
    ASSERT_TRUE(session->append({&token, 1}).has_value());
    ASSERT_TRUE(session->pick({}).has_value());
  }
  EXPECT_EQ(FakePick::calls, 12u);
}

/// Greedy continuation of the fake model.
std::vector<i32> greedy(std::vector<i32> tokens, size_t count) {
  std::vector<i32> answer;
  while (answer.size() < count) {
    auto logits = wantedLogits(tokens);
    answer.push_back(
        i32(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    tokens.push_back(answer.back());
  }
  return answer;
}

TEST(Generate, GreedyIsTheArgmaxChain) {
  auto prompt = randomTokens(30, 9);
  for (bool kv : {true, false}) {
    auto session = makeSession(fakeProgram({0, 40}, 256, kv), {.chunk = 8});
    std::vector<i32> seen;
    auto result =
        generate(*session, prompt, {.maxTokens = 50, .showLogits = true},
                 [&](const GeneratedToken &token) {
                   EXPECT_EQ(token.position, 30 + seen.size());
                   auto all = prompt;
                   all.insert(all.end(), seen.begin(), seen.end());
                   expectLogits(token.logits, all);
                   seen.push_back(token.token);
                   return true;
                 })
            .value();
    EXPECT_EQ(result.tokens, greedy(prompt, 50));
    EXPECT_EQ(result.tokens, seen);
    EXPECT_EQ(result.reason, FinishReason::Length);
    EXPECT_EQ(result.promptTokens, 30u);
    EXPECT_EQ(result.prefillTokens, 30u);
    EXPECT_EQ(result.decodeSteps, 49u);
    EXPECT_GT(result.prefillTokensPerSecond(), 0);
    EXPECT_GT(result.decodeTokensPerSecond(), 0);
  }
}

// B17.
TEST(Generate, GivesExactlyTheTokensAskedFor) {
  auto prompt = randomTokens(5, 10);
  auto session = makeSession(fakeProgram({0}, 256));
  for (u32 count : {0u, 1u, 2u, 3u}) {
    auto result = generate(*session, prompt, {.maxTokens = count}).value();
    EXPECT_EQ(result.tokens, greedy(prompt, count));
    EXPECT_EQ(result.reason, FinishReason::Length);
  }
  auto empty = generate(*session, {}, {});
  ASSERT_FALSE(empty.has_value());
  EXPECT_EQ(empty.error().kind, ErrorKind::InvalidInput);
}

TEST(Generate, StopsAtStopTokensAndTheVisitorsWish) {
  auto prompt = randomTokens(5, 11);
  auto want = greedy(prompt, 20);
  auto session = makeSession(fakeProgram({0}, 256));
  size_t at = 0; // the first token that has not occurred before
  for (size_t i = 1; i < want.size() && at < 4; ++i)
    if (std::find(want.begin(), want.begin() + long(i), want[i]) ==
        want.begin() + long(i))
      at = i;
  auto result = generate(*session, prompt,
                         {.maxTokens = 50, .stopTokens = {-1, want[at]}})
                    .value();
  EXPECT_EQ(result.tokens,
            std::vector<i32>(want.begin(), want.begin() + long(at)));
  EXPECT_EQ(result.reason, FinishReason::Stop);

  u32 left = 3;
  result = generate(*session, prompt, {.maxTokens = 50},
                    [&](const GeneratedToken &) { return --left != 0; })
               .value();
  EXPECT_EQ(result.tokens.size(), 3u);
  EXPECT_EQ(result.reason, FinishReason::Stop);
}

// B26: prompt 250 in a context of 256 gives six tokens, then length.
TEST(Generate, ContextEndsTheAnswer) {
  auto prompt = randomTokens(250, 12);
  for (bool kv : {true, false}) {
    auto session = makeSession(fakeProgram({0}, 256, kv));
    auto result = generate(*session, prompt, {.maxTokens = 50}).value();
    EXPECT_EQ(result.tokens, greedy(prompt, 6));
    EXPECT_EQ(result.reason, FinishReason::Length);
    auto full = randomTokens(256, 13);
    EXPECT_TRUE(generate(*session, full, {})->tokens.empty());
    full.push_back(1);
    EXPECT_THAT(generate(*session, full, {}).error().message,
                HasSubstr("257 tokens do not fit the context of 256 tokens"));
  }
}

TEST(Generate, ChatTurnsEvaluateOnlyWhatIsNew) {
  auto session = makeSession(fakeProgram({0, 40}, 256), {.chunk = 16});
  auto conversation = randomTokens(20, 14);
  for (int turn = 0; turn < 5; ++turn) {
    auto result = generate(*session, conversation, {.maxTokens = 10}).value();
    EXPECT_EQ(result.tokens, greedy(conversation, 10));
    if (turn > 0)
      EXPECT_LE(result.prefillTokens, 16u); // 15 new ones, and the last token
    conversation.insert(conversation.end(), result.tokens.begin(),
                        result.tokens.end());
    auto question = randomTokens(15, u32(15 + turn));
    conversation.insert(conversation.end(), question.begin(), question.end());
  }
}

TEST(Generate, SamplingDoesNotDependOnSteps) {
  auto prompt = randomTokens(33, 20);
  GenerateOptions options{.maxTokens = 60};
  options.sampling = {
      .temperature = 1, .topK = 20, .repetitionPenalty = 1.2f, .seed = 5};
  std::vector<i32> want;
  for (u32 chunk : {512u, 5u, 1u}) {
    auto session = makeSession(fakeProgram({0}, 256), {.chunk = chunk});
    auto got = generate(*session, prompt, options)->tokens;
    if (want.empty())
      want = got;
    EXPECT_EQ(got, want);
    // Again, from the cache.
    EXPECT_EQ(generate(*session, prompt, options)->tokens, want);
  }
  options.sampling.seed = 6;
  auto session = makeSession(fakeProgram({0}, 256));
  EXPECT_NE(generate(*session, prompt, options)->tokens, want);
  EXPECT_NE(want, greedy(prompt, 60));
}

TEST(Generate, CancelEndsPrefillAndDecode) {
  std::atomic<bool> cancel{true};
  auto prompt = randomTokens(100, 21);
  auto session = makeSession(fakeProgram({0}, 256), {.chunk = 10});
  auto result = generate(*session, prompt, {.cancel = &cancel}).value();
  EXPECT_EQ(result.reason, FinishReason::Cancelled);
  EXPECT_TRUE(result.tokens.empty());
  EXPECT_TRUE(session->tokens().empty());
  cancel = false;
  result = generate(*session, prompt, {.cancel = &cancel},
                    [&](const GeneratedToken &token) {
                      cancel = token.position == 104;
                      return true;
                    })
               .value();
  EXPECT_EQ(result.reason, FinishReason::Cancelled);
  EXPECT_EQ(result.tokens, greedy(prompt, 5));
}

TEST(Generate, BadSamplingIsAnErrorBeforeAnyWork) {
  auto session = makeSession(fakeProgram({0}, 256));
  auto prompt = randomTokens(5, 22);
  GenerateOptions options;
  options.sampling.topP = 2;
  EXPECT_THAT(generate(*session, prompt, options).error().message,
              HasSubstr("top-p"));
  EXPECT_TRUE(session->tokens().empty());
}

} // namespace

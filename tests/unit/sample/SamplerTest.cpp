#include "runtime/sample/Sampler.h"
#include "runtime/sample/LogProbs.h"
#include "runtime/sample/LogitMath.h"
#include "runtime/sample/Noise.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <set>

using namespace lathe;
using namespace lathe::runtime;

namespace {

constexpr f32 inf = std::numeric_limits<f32>::infinity();

std::vector<f32> logsOf(std::vector<f64> probabilities) {
  std::vector<f32> logits;
  for (f64 p : probabilities)
    logits.push_back(f32(std::log(p)));
  return logits;
}

Sampler make(SamplerOptions options, u32 vocab) {
  auto sampler = Sampler::create(std::move(options), vocab);
  EXPECT_TRUE(sampler.has_value()) << sampler.error().message;
  return std::move(*sampler);
}

/// Draws at positions 0 .. count - 1 and counts tokens.
std::vector<u32> draw(const SamplerOptions &options,
                      const std::vector<f32> &logits, u32 count) {
  Sampler sampler = make(options, u32(logits.size()));
  std::vector<u32> counts(logits.size());
  std::vector<i32> history;
  for (u32 i = 0; i < count; ++i) {
    auto picked = sampler.sample(logits, history);
    EXPECT_TRUE(picked.has_value());
    ++counts[u32(picked->token)];
    history.push_back(0);
  }
  return counts;
}

f64 chiSquare(const std::vector<u32> &counts, const std::vector<f64> &p) {
  f64 n = 0, sum = 0;
  for (u32 count : counts)
    n += count;
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0)
      sum += (counts[i] - n * p[i]) * (counts[i] - n * p[i]) / (n * p[i]);
  return sum;
}

std::set<u32> support(const std::vector<u32> &counts) {
  std::set<u32> tokens;
  for (u32 i = 0; i < counts.size(); ++i)
    if (counts[i])
      tokens.insert(i);
  return tokens;
}

// 13.8: chi-square with 2 degrees of freedom at p = 0.001.
TEST(Sampler, DrawsFromTheDistribution) {
  for (u64 seed : {1u, 2u, 3u, 4u, 5u}) {
    auto counts =
        draw({.temperature = 1, .seed = seed}, logsOf({.5, .3, .2}), 20000);
    EXPECT_LT(chiSquare(counts, {.5, .3, .2}), 13.8) << seed;
    // The same through the path with filters on.
    counts = draw({.temperature = 1, .topK = 3, .seed = seed},
                  logsOf({.5, .3, .2}), 20000);
    EXPECT_LT(chiSquare(counts, {.5, .3, .2}), 13.8) << seed;
  }
}

TEST(Sampler, SeedsDiffer) {
  auto logits = logsOf({.5, .3, .2});
  EXPECT_NE(draw({.temperature = 1, .seed = 1}, logits, 1000),
            draw({.temperature = 1, .seed = 2}, logits, 1000));
  EXPECT_EQ(draw({.temperature = 1, .seed = 1}, logits, 1000),
            draw({.temperature = 1, .seed = 1}, logits, 1000));
}

TEST(Sampler, TemperatureReshapes) {
  // p^2 and sqrt(p), normalised.
  auto counts =
      draw({.temperature = 0.5f, .seed = 3}, logsOf({.5, .3, .2}), 20000);
  EXPECT_LT(chiSquare(counts, {.25 / .38, .09 / .38, .04 / .38}), 13.8);
  counts = draw({.temperature = 2, .seed = 3}, logsOf({.64, .25, .11}), 20000);
  f64 z = .8 + .5 + std::sqrt(.11);
  EXPECT_LT(chiSquare(counts, {.8 / z, .5 / z, std::sqrt(.11) / z}), 13.8);
  counts = draw({.temperature = 1e-30f, .seed = 3}, logsOf({.5, .49, .01}), 99);
  EXPECT_EQ(counts[0], 99u);
}

TEST(Sampler, GreedyTakesTheLowestOfTies) {
  Sampler sampler = make({}, 5);
  EXPECT_EQ(sampler.sample(std::vector<f32>{1, 3, 2, 3, 3}, {})->token, 1);
  auto picked = sampler.sample(std::vector<f32>{-5, -5, -inf, -5, -5}, {});
  EXPECT_EQ(picked->token, 0);
  EXPECT_EQ(picked->logit, -5);
}

TEST(Sampler, FiltersKeepExactSets) {
  auto logits = logsOf({.05, .4, .1, .3, .15});
  auto kept = [&](SamplerOptions options) {
    options.temperature = 10; // nearly uniform over what is left
    options.seed = 11;
    return support(draw(options, logits, 3000));
  };
  using Set = std::set<u32>;
  EXPECT_EQ(kept({}), (Set{0, 1, 2, 3, 4}));
  EXPECT_EQ(kept({.topK = 1}), (Set{1}));
  EXPECT_EQ(kept({.topK = 3}), (Set{1, 3, 4}));
  EXPECT_EQ(kept({.topK = 100}), (Set{0, 1, 2, 3, 4}));
  EXPECT_EQ(kept({.topP = 0.01f}), (Set{1}));
  EXPECT_EQ(kept({.topP = 0.39f}), (Set{1}));
  EXPECT_EQ(kept({.topP = 0.41f}), (Set{1, 3}));
  EXPECT_EQ(kept({.topP = 0.69f}), (Set{1, 3}));
  EXPECT_EQ(kept({.topP = 0.84f}), (Set{1, 3, 4}));
  EXPECT_EQ(kept({.topP = 0.86f}), (Set{1, 2, 3, 4}));
  EXPECT_EQ(kept({.topP = 0.96f}), (Set{0, 1, 2, 3, 4}));
  EXPECT_EQ(kept({.minP = 0.9f}), (Set{1}));
  EXPECT_EQ(kept({.minP = 0.3f}), (Set{1, 3, 4}));    // >= .12
  EXPECT_EQ(kept({.minP = 0.2f}), (Set{1, 2, 3, 4})); // >= .08
  // Top-p counts within what top-k leaves: .4 / .85 and .7 / .85.
  EXPECT_EQ(kept({.topK = 3, .topP = 0.46f}), (Set{1}));
  EXPECT_EQ(kept({.topK = 3, .topP = 0.48f}), (Set{1, 3}));
  EXPECT_EQ(kept({.topK = 4, .topP = 0.9f, .minP = 0.5f}), (Set{1, 3}));
}

TEST(Sampler, TopKTiesKeepTheLowestIds) {
  std::vector<f32> logits(100, 1.0f);
  logits[70] = 2;
  auto counts = draw({.temperature = 10, .topK = 4}, logits, 500);
  EXPECT_EQ(support(counts), (std::set<u32>{0, 1, 2, 70}));
}

// Filters come before the temperature: it never changes what they keep.
TEST(Sampler, FiltersLookAtTheUntemperedDistribution) {
  auto logits = logsOf({.6, .3, .1});
  for (f32 temperature : {0.1f, 1.0f, 50.0f})
    for (u32 token :
         support(draw({.temperature = temperature, .topP = 0.7f}, logits, 500)))
      EXPECT_LT(token, 2u);
}

// The pruned scan of the whole vocabulary picks what the plain definition does.
TEST(Sampler, PruningChangesNothing) {
  std::mt19937 random(8);
  for (u32 round = 0; round < 200; ++round) {
    u32 vocab = 1 + random() % 3000;
    std::vector<f32> logits(vocab);
    f32 spread = f32(random() % 1000) / 100;
    for (f32 &x : logits)
      x = std::normal_distribution<f32>(-3, spread)(random);
    PickArgs args{.temperature = 0.05f + f32(random() % 300) / 100,
                  .minP = random() % 2 ? 0 : 0.05f,
                  .topK = 0,
                  .position = round,
                  .seed = random(),
                  .edits = nullptr,
                  .editCount = 0,
                  .allowed = nullptr};
    f32 maximum = rowMaximum(logits).value;
    f64 best = -1e300;
    i32 want = -1;
    for (u32 i = 0; i < vocab; ++i) {
      if (logits[i] != maximum && args.minP > 0 &&
          contractExp(logits[i] - maximum) < args.minP)
        continue;
      f64 score = f64(logits[i]) / f64(args.temperature) +
                  noiseOf(args.seed, args.position, i);
      if (score > best) {
        best = score;
        want = i32(i);
      }
    }
    PickScratch scratch;
    ASSERT_EQ(pickFromLogits(logits, args, scratch)->token, want);
    // And so does the path by candidates, all of them.
    args.topK = vocab;
    ASSERT_EQ(pickFromLogits(logits, args, scratch)->token, want);
  }
}

TEST(Sampler, SelectTopEqualsSorting) {
  std::mt19937 random(4);
  for (u32 count : {0u, 1u, 7u, 40u, 1000u, 6000u}) {
    std::vector<f32> row(5000);
    for (f32 &x : row)
      x = f32(random() % 300); // many ties
    std::vector<Candidate> want, got;
    for (u32 i = 0; i < row.size(); ++i)
      want.push_back({row[i], i});
    std::sort(want.begin(), want.end());
    want.resize(std::min<size_t>(count, want.size()));
    selectTop(row, count, got);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i].token, want[i].token);
  }
}

TEST(Sampler, TopPWithFlatDistributionsLooksFurther) {
  std::vector<f32> logits(20000, 0.5f); // needs 12,000 of equal tokens
  Sampler sampler = make({.temperature = 1, .topP = 0.6f, .seed = 3}, 20000);
  std::vector<i32> history;
  i32 highest = 0;
  for (int i = 0; i < 300; ++i) {
    highest = std::max(highest, sampler.sample(logits, history)->token);
    history.push_back(0);
  }
  EXPECT_LT(highest, 12010);
  EXPECT_GT(highest, 11000);
}

/// The edited logit of each token: the rest is ruled out by `allowed`.
std::vector<f32> editedLogits(SamplerOptions options,
                              const std::vector<f32> &logits,
                              const std::vector<i32> &history) {
  Sampler sampler = make(std::move(options), u32(logits.size()));
  std::vector<f32> result;
  for (u32 i = 0; i < logits.size(); ++i) {
    u32 allowed = 1u << i;
    auto picked = sampler.sample(logits, history, &allowed);
    result.push_back(picked ? picked->logit : -inf);
  }
  return result;
}

TEST(Sampler, PenaltiesByHand) {
  std::vector<f32> logits{2, -2, 1, 0, 4};
  std::vector<i32> history{0, 1, 0, 3, 0};
  using testing::ElementsAre;
  EXPECT_EQ(editedLogits({.repetitionPenalty = 3}, {1}, {0})[0], 1.0f / 3);
  EXPECT_THAT(editedLogits({.repetitionPenalty = 2}, logits, history),
              ElementsAre(1, -4, 1, 0, 4));
  EXPECT_THAT(editedLogits({.presencePenalty = .5f}, logits, history),
              ElementsAre(1.5f, -2.5f, 1, -.5f, 4));
  EXPECT_THAT(editedLogits({.frequencyPenalty = .25f}, logits, history),
              ElementsAre(1.25f, -2.25f, 1, -.25f, 4));
  EXPECT_THAT(editedLogits({.repetitionPenalty = 2,
                            .presencePenalty = .5f,
                            .frequencyPenalty = .25f,
                            .bias = {{4, -1}, {0, 3}, {4, -1}}},
                           logits, history),
              ElementsAre(2.75f, -4.75f, 1, -.75f, 2));
  EXPECT_THAT(editedLogits({.repetitionPenalty = 2, .penaltyWindow = 2}, logits,
                           history),
              ElementsAre(1, -2, 1, 0, 4)); // only 3 and 0
  EXPECT_THAT(
      editedLogits({.presencePenalty = 1, .penaltyWindow = 0}, logits, history),
      ElementsAre(1, -3, 1, -1, 4));
  EXPECT_THAT(editedLogits({.bias = {{2, -inf}}}, logits, history),
              ElementsAre(2, -2, -inf, 0, 4));
}

TEST(Sampler, AllowedSetAndBiasDecide) {
  Sampler sampler = make({.bias = {{2, 100}}}, 40);
  std::vector<f32> logits(40, 0);
  logits[9] = 50;
  EXPECT_EQ(sampler.sample(logits, {})->token, 2);
  u32 allowed[2] = {1u << 9, 1u << 3};
  EXPECT_EQ(sampler.sample(logits, {}, allowed)->token, 9);
  allowed[0] = 0;
  EXPECT_EQ(sampler.sample(logits, {}, allowed)->token, 35);
  allowed[1] = 0;
  auto none = sampler.sample(logits, {}, allowed);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().kind, ErrorKind::InvalidInput);
  EXPECT_THAT(none.error().message, testing::HasSubstr("no token is allowed"));
}

TEST(Sampler, BrokenLogitsAreAnError) {
  for (f32 broken : {std::nanf(""), inf})
    for (f32 temperature : {0.0f, 1.0f}) {
      Sampler sampler = make({.temperature = temperature, .topK = 2}, 20);
      std::vector<f32> logits(20, 1);
      logits[17] = broken;
      auto result = sampler.sample(logits, {});
      ASSERT_FALSE(result.has_value());
      EXPECT_EQ(result.error().kind, ErrorKind::Internal);
      EXPECT_THAT(result.error().message, testing::HasSubstr("not finite"));
    }
}

TEST(Sampler, BadOptionsAreNamed) {
  auto message = [](SamplerOptions options) {
    auto sampler = Sampler::create(std::move(options), 10);
    return sampler ? std::string("accepted") : sampler.error().message;
  };
  EXPECT_EQ(message({.temperature = -1}),
            "temperature is -1; expected 0 or more, finite");
  EXPECT_EQ(message({.temperature = std::nanf("")}),
            "temperature is nan; expected 0 or more, finite");
  EXPECT_EQ(message({.topP = 0}),
            "top-p is 0; expected more than 0, at most 1");
  EXPECT_EQ(message({.topP = 1.5f}),
            "top-p is 1.5; expected more than 0, at most 1");
  EXPECT_EQ(message({.minP = 1}),
            "min-p is 1; expected 0 or more, less than 1");
  EXPECT_EQ(message({.repetitionPenalty = 0}),
            "repetition penalty is 0; expected 1e-6 to 1e6");
  EXPECT_EQ(message({.presencePenalty = inf}),
            "presence penalty is inf; expected -1e9 to 1e9");
  EXPECT_EQ(message({.frequencyPenalty = -1e38f}),
            "frequency penalty is -1e+38; expected -1e9 to 1e9");
  EXPECT_EQ(message({.bias = {{10, 1}}}),
            "logit bias for token id 10, which is not in the vocabulary of 10");
  EXPECT_EQ(message({.bias = {{1, inf}}}),
            "logit bias of token 1 is inf; expected at most 1e9, or -inf");
  EXPECT_EQ(message({.bias = {{1, -inf}}}), "accepted");
}

TEST(LogProbs, ClosedForm) {
  auto logits = logsOf({.5, .3, .2});
  logits.push_back(-inf);
  for (f32 &x : logits)
    x += 3; // softmax does not care
  auto probs = LogProbs::of(logits).value();
  EXPECT_NEAR(probs.of(0), std::log(.5), 1e-6);
  EXPECT_NEAR(probs.of(2), std::log(.2), 1e-6);
  EXPECT_EQ(probs.of(3), -std::numeric_limits<f64>::infinity());
  auto top = probs.top(10);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[1].token, 1);
  EXPECT_EQ(top[1].logprob, probs.of(1));
  logits[1] = std::nanf("");
  EXPECT_FALSE(LogProbs::of(logits).has_value());
  EXPECT_FALSE(LogProbs::of(std::vector<f32>(5, -inf)).has_value());
}

} // namespace

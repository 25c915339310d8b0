// The two real models, if LATHE_MODELS names the folder that holds them: the
// same bits in any manner of evaluation, and llama.cpp's ids where rounding
// does not decide.
#include "tests/e2e/real/GoldenModel.h"
#include "tests/e2e/support/Evaluate.h"
#include "tests/unit/support/TempDir.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::tests;

namespace {

struct Model {
  const char *golden; ///< tests/golden/golden/NAME.json
  /// Where the F32 run's best two logits are further apart, rounding
  /// activations to 8 bits must not change the id.
  f64 gapMax;
};

class RealModelTest : public testing::TestWithParam<Model> {};

TEST_P(RealModelTest, BitsAndIds) {
  GoldenModel model(GetParam().golden);
  if (!model.missing.empty())
    GTEST_SKIP() << model.missing;
  TempDir temp;
  std::vector<std::string> isas = nativeIsas();
  auto compiled = compileModel(model.path, temp.path("x.lathe"), isas, "f16");
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;

  // Longer than Gemma's window of 512.
  std::vector<i32> tokens = model.text(640);
  constexpr u32 skip = 620, few = 20;

  auto best = loadEngine(temp.path("x.lathe"), isas.back());
  ASSERT_TRUE(best.has_value()) << best.error().message;
  auto reference = logitsOf(*best, tokens, skip, 512, 2);
  ASSERT_TRUE(reference.has_value()) << reference.error().message;
  auto start = std::span(tokens).first(few);
  auto startReference = logitsOf(*best, start, 0, 512, 2);
  ASSERT_TRUE(startReference.has_value()) << startReference.error().message;
  auto expectSame = [](const runtime::Result<std::vector<f32>> &logits,
                       const std::vector<f32> &wanted) {
    ASSERT_TRUE(logits.has_value()) << logits.error().message;
    ASSERT_EQ(logits->size(), wanted.size());
    EXPECT_EQ(
        std::memcmp(logits->data(), wanted.data(), wanted.size() * sizeof(f32)),
        0);
  };
  for (u32 threads : {1u, 2u})
    for (u32 chunk : {1u, 7u, 64u, 512u}) {
      SCOPED_TRACE(testing::Message()
                   << "chunk " << chunk << ", threads " << threads);
      expectSame(logitsOf(*best, tokens, skip, chunk, threads), *reference);
    }
  {
    SCOPED_TRACE("in a batch");
    auto part = std::span(tokens).first(160);
    auto alone = logitsOf(*best, part, 140, 512, 2);
    ASSERT_TRUE(alone.has_value()) << alone.error().message;
    expectSame(logitsInBatch(**best, part, 140, 2), *alone);
  }
  isas.pop_back();
  for (const std::string &isa : isas) {
    SCOPED_TRACE("cpu:" + isa);
    auto other = loadEngine(temp.path("x.lathe"), isa);
    ASSERT_TRUE(other.has_value()) << other.error().message;
    // Slow where the CPU has to imitate fma.
    if (isa == "generic")
      expectSame(logitsOf(*other, start, 0, 512, 2), *startReference);
    else
      expectSame(logitsOf(*other, tokens, skip, 64, 2), *reference);
  }

  size_t equal = 0, peerEqual = 0;
  for (const auto &prompt : model.golden.at("prompts")) {
    SCOPED_TRACE(prompt.at("name").get<std::string>());
    auto wanted = prompt.at("greedy").get<std::vector<i32>>();
    auto gaps = prompt.at("gaps").get<std::vector<f64>>();
    auto ids = greedyIds(*best, prompt.at("ids").get<std::vector<i32>>(),
                         u32(wanted.size()));
    ASSERT_TRUE(ids.has_value()) << ids.error().message;
    size_t same = 0;
    while (same < wanted.size() && same < ids->size() &&
           (*ids)[same] == wanted[same])
      ++same;
    if (same < wanted.size())
      EXPECT_LE(gaps[same], GetParam().gapMax) << "at id " << same;
    equal += same;
    peerEqual += prompt.at("peer_quantized_equal").get<size_t>();
  }
  // No worse than llama.cpp's own run of the quantized file.
  EXPECT_GE(equal, peerEqual);
}

INSTANTIATE_TEST_SUITE_P(All, RealModelTest,
                         testing::Values(Model{"smollm2", 0.6},
                                         Model{"gemma3", 0.15}),
                         [](const auto &info) {
                           return std::string(info.param.golden);
                         });

} // namespace

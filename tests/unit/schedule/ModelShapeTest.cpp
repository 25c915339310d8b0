#include "runtime/schedule/ModelShape.h"
#include "runtime/schedule/MemoryPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::runtime;

namespace {

constexpr f64 giga = 1e9;

/// LLaMA-2-70B (Touvron et al., arXiv 2307.09288; its config.json).
ModelShape llama2Of70B() {
  return {.vocab = 32000,
          .hidden = 8192,
          .feedForward = 28672,
          .context = 4096,
          .kinds = {{.layers = 80, .heads = 64, .kvHeads = 8, .headDim = 128}},
          .parameters = 68'976'648'192};
}

TEST(ModelShape, KvOfLlama2Of70B) {
  ModelShape shape = llama2Of70B();
  auto gigabytes = [&](HeadSharing sharing) {
    return f64(kvBytesOf(shape, "f16", 4096, sharing)) / giga;
  };
  EXPECT_NEAR(gigabytes(HeadSharing::Mha), 10.74, 0.005);
  EXPECT_NEAR(gigabytes(HeadSharing::AsIs), 1.34, 0.005);
  EXPECT_NEAR(gigabytes(HeadSharing::Mqa), 0.17, 0.005);
  EXPECT_EQ(kvBytesPerToken(shape, "f16"), 2u * 80 * 8 * 128 * 2);
  EXPECT_EQ(kvBytesPerToken(shape, "f16", HeadSharing::Mha),
            2u * 80 * 64 * 128 * 2);
  EXPECT_EQ(kvBytesPerToken(shape, "f32"), 2 * kvBytesPerToken(shape, "f16"));
  EXPECT_EQ(kvBytesPerToken(shape, "bf16"), kvBytesPerToken(shape, "f16"));
  // A byte each, and an f32 scale per token and head.
  EXPECT_EQ(kvBytesPerToken(shape, "int8"), 2u * 80 * 8 * (128 + 4));
  EXPECT_EQ(kvBytesPerToken(shape, "f8"), 0u);
  // The program's pages are just that.
  StepProgram program = sketchProgram(shape, "f16", true);
  ASSERT_EQ(program.groups.size(), 1u);
  EXPECT_EQ(program.groups[0].pageBytes,
            pageTokens * kvBytesPerToken(shape, "f16"));
}

TEST(ModelShape, BandwidthBoundsATokensTime) {
  EXPECT_DOUBLE_EQ(secondsPerToken(u64(140e9), 2.0e12), 0.070);
  u64 weights = bytesOfWeights(llama2Of70B().parameters, 16);
  EXPECT_NEAR(f64(weights) / giga, 138, 0.1);
  EXPECT_NEAR(secondsPerToken(weights, 2.0e12), 0.069, 0.0005);
}

TEST(ModelShape, WeightsOfEachPrecision) {
  std::vector<std::string> names;
  for (const WeightPrecision &precision : weightPrecisions())
    names.emplace_back(precision.name);
  EXPECT_THAT(names, testing::ElementsAre("fp32", "fp16", "int8", "int4"));
  EXPECT_EQ(bytesOfWeights(7, 32), 28u);
  EXPECT_EQ(bytesOfWeights(7, 4), 4u);
  EXPECT_EQ(bytesOfWeights(32, 4.5), 18u); // a block of Q4_0
  EXPECT_EQ(bytesOfWeights(32, 8.5), 34u);
}

// Gemma-3-1B: of 26 layers every sixth sees more than 512 tokens.
TEST(ModelShape, LayersWithAWindowKeepNoMoreThanThat) {
  ModelShape shape{
      .context = 32768,
      .kinds = {{.layers = 22,
                 .window = 512,
                 .heads = 4,
                 .kvHeads = 1,
                 .headDim = 256},
                {.layers = 4, .heads = 4, .kvHeads = 1, .headDim = 256}}};
  u64 layer = 2 * 256 * 2;
  EXPECT_EQ(kvBytesPerToken(shape, "f16"), 26 * layer);
  EXPECT_EQ(kvBytesOf(shape, "f16", 512), 26 * layer * 512);
  EXPECT_EQ(kvBytesOf(shape, "f16", 32768),
            22 * layer * 512 + 4 * layer * 32768);
  StepProgram program = sketchProgram(shape, "f16", true);
  ASSERT_EQ(program.groups.size(), 2u);
  EXPECT_EQ(program.groups[0].window, 512u);
  EXPECT_EQ(program.groups[0].pageBytes, 16 * 22 * layer);
  EXPECT_EQ(program.groups[1].window, 0u);
}

// The slots of Llama-3.1-8B as plan-memory assigns them (Q4_K_M).
TEST(ModelShape, BuffersAreThoseOfACompiledProgram) {
  ModelShape shape{
      .vocab = 128256,
      .hidden = 4096,
      .feedForward = 14336,
      .context = 131072,
      .kinds = {{.layers = 32, .heads = 32, .kvHeads = 8, .headDim = 128}}};
  StepProgram sketch = sketchProgram(shape, "f16", true);
  StepProgram compiled = sketch;
  compiled.attentionChunk = 128;
  compiled.attentionRowTile = 8;
  compiled.slots = {{.rows = 19712, .threads = 65536},
                    {.rows = 16384, .threads = 65536},
                    {.rows = 16384},
                    {.rows = 4096},
                    {.rows = 4096},
                    {.partials = 16640},
                    {.rows = 5632, .threads = 22528, .constant = 180224}};
  auto arena = [](const StepProgram &program) {
    MemoryLimit limit;
    return f64(MemoryPlan::settle(program, 2, {.requests = 16}, {&limit, 1})
                   .value()
                   .arenaBytes);
  };
  EXPECT_NEAR(arena(sketch) / arena(compiled), 1, 0.01);
  // Float weights: inputs of matrices stay floats.
  EXPECT_GT(arena(sketchProgram(shape, "f16", false)), arena(compiled));
}

} // namespace

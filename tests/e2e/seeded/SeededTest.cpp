// Every architecture, option and weight format that Lathe claims, from the GGUF
// file to logits: equal to llama.cpp's F32 run, and the same bits whatever the
// ISA layer, chunk size, number of threads and company in the batch.
#include "tests/e2e/seeded/SeededModel.h"
#include "tests/e2e/support/Evaluate.h"
#include "tests/unit/support/TempDir.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <ranges>

using namespace lathe;
using namespace lathe::tests;

namespace {

void expectSameBits(const runtime::Result<std::vector<f32>> &logits,
                    std::span<const f32> wanted, u32 vocabulary) {
  ASSERT_TRUE(logits.has_value()) << logits.error().message;
  ASSERT_EQ(logits->size(), wanted.size());
  for (size_t at = 0; at < wanted.size(); at += vocabulary)
    ASSERT_EQ(
        std::memcmp(&(*logits)[at], &wanted[at], vocabulary * sizeof(f32)), 0)
        << "first at position " << at / vocabulary;
}

/// Whether products are of weights and unrounded activations.
bool hasF32Activations(const std::string &name) {
  return !name.starts_with("format-") || name == "format-f16" ||
         name == "format-bf16";
}

class SeededTest : public testing::TestWithParam<std::string> {};

TEST_P(SeededTest, EqualsLlamaCppInAnyMannerOfEvaluation) {
  Golden golden = readGolden(GetParam());
  TempDir temp;
  std::string engine = temp.path("model.lathe");
  std::vector<std::string> isas = nativeIsas();
  if (isas.size() < 3)
    std::cout << "NOT TESTED: this CPU runs only " << isas.size()
              << " of 3 ISA layers\n";
  bool isExact = hasF32Activations(GetParam());
  // No group of 16 divides the rows of its gate.
  bool strict = GetParam() != "llama-odd-sizes";
  auto compiled = compileModel(seededPath(GetParam()), engine, isas,
                               isExact ? "f32" : "f16", strict);
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;

  std::vector<f32> reference;
  // The last layer is the fastest.
  for (const std::string &isa : isas | std::views::reverse) {
    SCOPED_TRACE("cpu:" + isa);
    auto loaded = loadEngine(engine, isa);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    if (reference.empty()) {
      auto logits = logitsOf(*loaded, golden.tokens, 0, 512, 1);
      ASSERT_TRUE(logits.has_value()) << logits.error().message;
      reference = std::move(*logits);
      ASSERT_EQ(reference.size(), golden.tokens.size() * golden.vocabulary);
    }
    if (isa == "generic") {
      // Slow where the CPU has to imitate fma: up to behind the first KV chunk.
      auto start = std::span(golden.tokens).first(140);
      expectSameBits(
          logitsOf(*loaded, start, 0, 64, 2),
          std::span(reference).first(start.size() * golden.vocabulary),
          golden.vocabulary);
      continue;
    }
    for (u32 threads : {1u, 2u})
      for (u32 chunk : {1u, 7u, 64u, 512u}) {
        SCOPED_TRACE(testing::Message()
                     << "chunk " << chunk << ", threads " << threads);
        expectSameBits(logitsOf(*loaded, golden.tokens, 0, chunk, threads),
                       reference, golden.vocabulary);
      }
    SCOPED_TRACE("in a batch");
    expectSameBits(logitsInBatch(**loaded, golden.tokens, 0, 2), reference,
                   golden.vocabulary);
  }

  f64 nmse = nmseOf(reference, golden);
  std::cout << "NMSE " << nmse << "\n";
  if (!isExact) {
    // Activations are rounded to 8 bits, as llama.cpp's are.
    EXPECT_LE(nmse, *golden.peerNmse);
    return;
  }
  EXPECT_LE(nmse, nmseMax);
  auto loaded = loadEngine(engine, isas.back());
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  auto ids =
      greedyIds(*loaded, std::span(golden.tokens).first(golden.promptTokens),
                u32(golden.greedy.size()));
  ASSERT_TRUE(ids.has_value()) << ids.error().message;
  EXPECT_EQ(*ids, golden.greedy);
}

// The one layer whose bits are its own, where weights are BF16.
TEST(Bf16Layer, GivesTheSameBitsInAnyManner) {
  if (!runtime::CpuFeatures::detect().supportsIsa("avx512bf16"))
    GTEST_SKIP() << "NOT TESTED: this CPU does not multiply bf16";
  Golden golden = readGolden("format-bf16");
  TempDir temp;
  std::string engine = temp.path("model.lathe");
  std::vector<std::string> isas = {"native", "avx512"};
  auto compiled = compileModel(seededPath("format-bf16"), engine, isas, "f32");
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  EXPECT_EQ(compiled->targets,
            (std::vector<std::string>{"cpu:avx512bf16", "cpu:avx512"}));
  auto loaded = loadEngine(engine, "");
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ((*loaded)->targetName(), "cpu:avx512bf16");
  auto reference = logitsOf(*loaded, golden.tokens, 0, 512, 1);
  ASSERT_TRUE(reference.has_value()) << reference.error().message;
  for (u32 chunk : {1u, 7u, 64u})
    expectSameBits(logitsOf(*loaded, golden.tokens, 0, chunk, 2), *reference,
                   golden.vocabulary);
  expectSameBits(logitsInBatch(**loaded, golden.tokens, 0, 2), *reference,
                 golden.vocabulary);
  // Activations are rounded to 8 bits of mantissa.
  f64 nmse = nmseOf(*reference, golden);
  std::cout << "NMSE " << nmse << "\n";
  EXPECT_LE(nmse, bf16NmseMax);
  EXPECT_GT(nmse, nmseMax);
}

// Without BF16 weights there is nothing to gain by it.
TEST(Bf16Layer, IsNotChosenForOtherFormats) {
  TempDir temp;
  std::string engine = temp.path("model.lathe");
  std::vector<std::string> isas = {"native"};
  auto compiled = compileModel(seededPath("format-f16"), engine, isas, "f32");
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  EXPECT_NE(compiled->targets.front(), "cpu:avx512bf16");
}

INSTANTIATE_TEST_SUITE_P(All, SeededTest, testing::ValuesIn(seededNames()),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

} // namespace

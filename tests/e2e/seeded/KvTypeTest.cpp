// KV caches of bf16 and int8: the same bits in any manner of evaluation, and
// how far they move the distribution of the next token.
#include "tests/e2e/seeded/SeededModel.h"
#include "tests/e2e/support/Evaluate.h"
#include "tests/unit/support/TempDir.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <ranges>

using namespace lathe;
using namespace lathe::tests;

namespace {

/// What a cache of int8 may add to what one of f16 does, in nats a token; one
/// of bf16 adds less. Any changed bit costs some where activations are rounded
/// to int8 behind attention, and more in random models of small heads than in
/// trained ones, which tests/e2e/cli/test_real.py holds to a tenth of this.
constexpr f64 addedKlMax = 0.02;

/// The mean KL divergence of the distributions of `logits` from those of
/// `reference`, rows of `vocabulary` logits.
f64 meanKl(std::span<const f32> reference, std::span<const f32> logits,
           u32 vocabulary) {
  auto logSumOf = [&](const f32 *row) {
    f64 top = *std::max_element(row, row + vocabulary), sum = 0;
    for (u32 i = 0; i < vocabulary; ++i)
      sum += std::exp(row[i] - top);
    return top + std::log(sum);
  };
  f64 kl = 0;
  size_t rows = reference.size() / vocabulary;
  for (size_t row = 0; row < rows; ++row) {
    const f32 *p = &reference[row * vocabulary], *q = &logits[row * vocabulary];
    f64 pSum = logSumOf(p), qSum = logSumOf(q);
    for (u32 i = 0; i < vocabulary; ++i)
      kl += std::exp(p[i] - pSum) * ((p[i] - pSum) - (q[i] - qSum));
  }
  return kl / f64(rows);
}

using Param = std::tuple<std::string, std::string>;

class KvTypeTest : public testing::TestWithParam<Param> {};

TEST_P(KvTypeTest, SameBitsAndCloseToF32) {
  auto [dtype, name] = GetParam();
  Golden golden = readGolden(name);
  TempDir temp;
  std::vector<std::string> isas = nativeIsas();
  auto compiled =
      compileModel(seededPath(name), temp.path("x.lathe"), isas, dtype);
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  auto expectSame = [&](const runtime::Result<std::vector<f32>> &logits,
                        std::span<const f32> wanted) {
    ASSERT_TRUE(logits.has_value()) << logits.error().message;
    ASSERT_EQ(logits->size(), wanted.size());
    EXPECT_EQ(
        std::memcmp(logits->data(), wanted.data(), wanted.size() * sizeof(f32)),
        0);
  };
  std::vector<f32> reference;
  for (const std::string &isa : isas | std::views::reverse) {
    SCOPED_TRACE("cpu:" + isa);
    auto loaded = loadEngine(temp.path("x.lathe"), isa);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    if (reference.empty()) {
      auto logits = logitsOf(*loaded, golden.tokens, 0, 512, 1);
      ASSERT_TRUE(logits.has_value()) << logits.error().message;
      reference = std::move(*logits);
    }
    if (isa == "generic") {
      // Slow where the CPU has to imitate fma.
      auto start = std::span(golden.tokens).first(140);
      expectSame(logitsOf(*loaded, start, 0, 64, 2),
                 std::span(reference).first(start.size() * golden.vocabulary));
      continue;
    }
    for (auto [chunk, threads] :
         {std::pair(1u, 2u), {7u, 1u}, {64u, 2u}, {512u, 2u}}) {
      SCOPED_TRACE(testing::Message()
                   << "chunk " << chunk << ", threads " << threads);
      expectSame(logitsOf(*loaded, golden.tokens, 0, chunk, threads),
                 reference);
    }
    SCOPED_TRACE("in a batch");
    expectSame(logitsInBatch(**loaded, golden.tokens, 0, 2), reference);
  }

  std::span<const std::string> best = std::span(isas).last(1);
  // The logits of another engine of this model, with a cache of `type`.
  auto logitsWith = [&](const char *type) {
    std::string path = temp.path(std::string(type) + ".lathe");
    auto other = compileModel(seededPath(name), path, best, type);
    EXPECT_TRUE(other.has_value()) << other.error().message;
    auto loaded = loadEngine(path, best[0]);
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
    auto logits = logitsOf(*loaded, golden.tokens, 0, 512, 2);
    EXPECT_TRUE(logits.has_value()) << logits.error().message;
    return logits ? std::move(*logits) : std::vector<f32>();
  };
  std::vector<f32> exact = logitsWith("f32"), half = logitsWith("f16");
  ASSERT_EQ(exact.size(), reference.size());
  ASSERT_EQ(half.size(), reference.size());
  f64 kl = meanKl(exact, reference, golden.vocabulary);
  f64 halfKl = meanKl(exact, half, golden.vocabulary);
  std::cout << "KL from f32: " << kl << ", of f16 " << halfKl << "\n";
  EXPECT_LE(kl - halfKl, addedKlMax);
  EXPECT_GT(kl, 0);
}

std::string nameOf(const testing::TestParamInfo<Param> &info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Int8, KvTypeTest,
    testing::Combine(testing::Values("int8"),
                     testing::Values("llama-gqa", "llama-head-size",
                                     "gemma3-window-odd",
                                     "gemma3-attention-softcap",
                                     "format-q4-0")),
    nameOf);
INSTANTIATE_TEST_SUITE_P(BF16, KvTypeTest,
                         testing::Combine(testing::Values("bf16"),
                                          testing::Values("llama-head-size",
                                                          "format-q4-0")),
                         nameOf);

} // namespace

// `pick` of the two real models against its definition, if LATHE_MODELS names
// the folder that holds them: over the positions of real text, for every kind
// of request, on every ISA layer that this CPU runs.
#include "runtime/sample/Pick.h"
#include "tests/e2e/real/GoldenModel.h"
#include "tests/e2e/support/Evaluate.h"
#include "tests/unit/support/TempDir.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;

namespace {

constexpr u32 length = 512;

/// Requests of every kind; what they point to.
struct Requests {
  std::vector<PickEdit> edits;
  std::vector<u32> allowed;

  /// Edits of the tokens before a position, as penalties are.
  Requests(std::span<const i32> history, u32 vocab)
      : allowed((vocab + 31) / 32) {
    std::vector<i32> seen(history.begin(), history.end());
    std::ranges::sort(seen);
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    for (i32 token : seen)
      edits.push_back({token, token % 3 == 0 ? 2.5f : -0.75f, 1.25f});
    for (u32 i = 0; i < allowed.size(); ++i)
      allowed[i] = i % 5 == 0 ? 0 : 0x9e3779b9u * (i + 1);
  }

  std::vector<PickArgs> all() const {
    PickArgs drawn = {.temperature = 0.8f, .seed = 11};
    PickArgs hot = {.temperature = 1.6f, .minP = 0.02f, .seed = 12};
    PickArgs top = {.temperature = 1, .topK = 40, .seed = 13};
    PickArgs edited = {.edits = edits.data(), .editCount = edits.size()};
    PickArgs both = drawn;
    both.edits = edits.data();
    both.editCount = edits.size();
    both.allowed = allowed.data();
    return {{}, drawn, hot, top, edited, both, {.allowed = allowed.data()}};
  }
};

class RealPickTest : public testing::TestWithParam<const char *> {};

/// Compares all requests at every `stride`-th position.
void check(const LoadedEngine &engine, std::span<const i32> tokens, u32 stride,
           u32 threads) {
  const StepProgram &program = engine.program();
  ASSERT_TRUE(program.pick) << "the head is of q8_0";
  auto team = ThreadTeam::create({.threads = threads}).value();
  auto cache =
      KvCache::create(program.groups, {.pages = KvCache::pagesForSequence(
                                           program.groups, length, length)})
          .value();
  auto executor =
      CpuExecutor::create(program, {.rows = length}, *team, cache.get())
          .value();
  SequenceCache sequence(*cache, length);
  ASSERT_TRUE(sequence.extend(u32(tokens.size())).has_value());
  BatchSequence batch{&sequence, tokens};
  ASSERT_TRUE(executor->step({&batch, 1}).has_value());
  PickScratch scratch;
  u64 groups = 0, picks = 0;
  for (u32 row = threads; row < tokens.size(); row += stride) {
    const f32 *head = executor->head({&row, 1});
    std::vector<f32> logits(head, head + program.vocab);
    Requests requests(tokens.first(row + 1), program.vocab);
    for (PickArgs args : requests.all()) {
      args.position = row + 1;
      PickResult got = executor->pick({&row, 1}, {&args, 1}).front();
      auto want = pickFromLogits(logits, args, scratch);
      ASSERT_TRUE(want.has_value()) << want.error().message;
      ASSERT_EQ(got.token, want->token) << "at position " << row;
      ASSERT_EQ(std::memcmp(&got.logit, &want->logit, sizeof(f32)), 0);
      if (args.temperature == 0 && !args.allowed && args.editCount == 0) {
        groups += got.exactGroups;
        ++picks;
      }
    }
    // Several rows at once.
    std::vector<u32> rows = {row, row / 2, row};
    std::vector<PickArgs> each(3);
    each[2] = {.temperature = 1, .position = 9, .seed = 1};
    auto got = executor->pick(rows, each);
    ASSERT_EQ(got[0].token, pickFromLogits(logits, each[0], scratch)->token);
    ASSERT_EQ(got[2].token, pickFromLogits(logits, each[2], scratch)->token);
  }
  // What makes it worth while: few rows can win.
  if (picks > 100)
    EXPECT_LT(f64(groups) / f64(picks), 0.15 * program.vocab / 16);
}

TEST_P(RealPickTest, EqualsTheDefinition) {
  GoldenModel model(GetParam());
  if (!model.missing.empty())
    GTEST_SKIP() << model.missing;
  TempDir temp;
  std::vector<std::string> isas = nativeIsas();
  auto compiled = compileModel(model.path, temp.path("x.lathe"), isas, "f16");
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  std::vector<i32> tokens = model.text(length);
  for (const std::string &isa : isas) {
    SCOPED_TRACE("cpu:" + isa);
    auto engine = loadEngine(temp.path("x.lathe"), isa);
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    if (isa == "generic") // slow
      check(**engine, std::span(tokens).first(40), 13, 2);
    else if (isa == isas.back())
      check(**engine, tokens, 3, 2);
    for (u32 threads : {1u, 3u})
      if (isa != "generic")
        check(**engine, tokens, 61, threads);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RealPickTest,
                         testing::Values("smollm2", "gemma3"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

} // namespace

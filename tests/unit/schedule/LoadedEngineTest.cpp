#include "runtime/schedule/LoadedEngine.h"
#include "runtime/schedule/Session.h"
#include "tests/unit/engine/TinyEngine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::tests;

namespace {

class LoadedEngineTest : public testing::Test {
protected:
  std::shared_ptr<const LoadedEngine>
  load(const codegen::EngineDescription &description) {
    std::string path = dir.path("tiny.lathe");
    auto written = codegen::writeEngine(path, description);
    EXPECT_TRUE(written.has_value()) << written.error().message;
    auto loaded = LoadedEngine::load(openOrFail(path), "generic");
    EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
    return *loaded;
  }

  TempDir dir;
};

TEST_F(LoadedEngineTest, ProgramHasWhatTheManifestSays) {
  auto loaded = load(tinyDescription());
  EXPECT_EQ(loaded->targetName(), "cpu:generic");
  const StepProgram &program = loaded->program();
  EXPECT_EQ(program.vocab, 16u);
  EXPECT_EQ(program.hidden, 32u);
  EXPECT_EQ(program.context, 64u);
  EXPECT_TRUE(program.kv);
  ASSERT_EQ(program.groups.size(), 2u);
  EXPECT_EQ(program.groups[0].window, 0u);
  EXPECT_EQ(program.groups[0].pageBytes, 4096u);
  EXPECT_EQ(program.groups[1].window, 32u);
  EXPECT_EQ(program.groups[1].pageBytes, 2048u);
  EXPECT_EQ(program.groups[1].kvHeads, 1u);
  ASSERT_EQ(program.slots.size(), 2u);
  EXPECT_EQ(program.slots[1].rows, 128u);
  EXPECT_EQ(program.slots[1].sequences, 4u);
  EXPECT_EQ(program.slots[1].partials, 8u);
  EXPECT_EQ(program.slots[1].threads, 64u);
  EXPECT_EQ(program.slots[1].constant, 64u);
  EXPECT_EQ(program.attentionChunk, 128u);
  EXPECT_EQ(program.attentionRowTile, 4u);
  EXPECT_EQ(program.weights, loaded->engine().weights().data());
  EXPECT_EQ(program.body, loaded->code().entry("body"));
  EXPECT_EQ(program.head, loaded->code().entry("head"));
}

TEST_F(LoadedEngineTest, SessionRunsTheEnginesCode) {
  auto session =
      std::move(*Session::create(load(tinyDescription()), {.threads = 1}));
  EXPECT_EQ(session->context(), 64u);
  std::vector<i32> tokens{1, 2, 3};
  ASSERT_TRUE(session->append(tokens).has_value());
  EXPECT_EQ(session->logits().size(), 16u);
  EXPECT_EQ(session->logits()[0], 2.0f);
}

TEST_F(LoadedEngineTest, WithoutKvThereAreNoGroups) {
  auto description = tinyDescription();
  description.kvGroups.clear();
  auto &launches = description.programs[0].entries[0]->launches;
  for (auto &operand : launches[2]->operands)
    if (operand.space() == engine::fb::Space::Kv)
      operand = engine::fb::Operand(engine::fb::Space::Arena,
                                    engine::fb::Role::Read, 0, 0);
  launches[2]->rows = engine::fb::Rows::Tokens;
  auto loaded = load(description);
  EXPECT_FALSE(loaded->program().kv);
  EXPECT_TRUE(loaded->program().groups.empty());
  auto session = std::move(*Session::create(loaded, {.threads = 1}));
  std::vector<i32> tokens{1, 2, 3};
  ASSERT_TRUE(session->append(tokens).has_value());
}

TEST_F(LoadedEngineTest, UnknownIsaIsAnError) {
  std::string path = dir.path("tiny.lathe");
  ASSERT_TRUE(codegen::writeEngine(path, tinyDescription()).has_value());
  auto loaded = LoadedEngine::load(openOrFail(path), "neon");
  ASSERT_FALSE(loaded.has_value());
  EXPECT_THAT(loaded.error().message, testing::HasSubstr("neon"));
}

} // namespace

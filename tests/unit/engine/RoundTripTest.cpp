#include "tests/unit/engine/TinyEngine.h"

#include <gmock/gmock.h>

namespace lathe::tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(EngineRoundTrip, GivesBackWhatWasWritten) {
  TempDir dir;
  std::string path = dir.path("tiny.lathe");
  auto description = tinyDescription();
  auto written = codegen::writeEngine(path, description);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_THAT(dir.entries(), ElementsAre("tiny.lathe"));
  auto engine = openOrFail(path);
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->fileBytes(), written->fileBytes);

  fb::ManifestT manifest;
  engine->manifest().UnPackTo(&manifest);
  EXPECT_EQ(*manifest.model, description.model);
  ASSERT_EQ(manifest.kv_groups.size(), 2u);
  EXPECT_EQ(*manifest.kv_groups[1], description.kvGroups[1]);
  ASSERT_EQ(manifest.programs.size(), 1u);
  EXPECT_EQ(manifest.programs[0]->numerics_id, "test-1");
  EXPECT_EQ(manifest.programs[0]->entries[0]->launches[2]->operands,
            description.programs[0].entries[0]->launches[2]->operands);
  EXPECT_EQ(*manifest.sources[0], description.sources[0]);
  EXPECT_EQ(manifest.options, description.options);
  EXPECT_EQ(manifest.targets[1]->required_features, "avx2 fma f16c");

  EXPECT_THAT(engine->phases(), ElementsAre("canonicalize", "plan-memory"));
  EXPECT_EQ(*engine->ir("plan-memory"), description.ir[1].text);
  EXPECT_EQ(*engine->sources(1), "// avx2\n");
  auto tokenizer = engine->tokenizer();
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(*tokenizer, *description.tokenizer);

  EXPECT_EQ(engine->weights().size(), written->weightBytes);
  EXPECT_EQ(uintptr_t(engine->weights().data()) % 4096, 0u);
  for (uint32_t i = 0; i < manifest.weights.size(); ++i) {
    const fb::WeightT &weight = *manifest.weights[i];
    EXPECT_EQ(weight.name, description.weights[i].name);
    EXPECT_EQ(weight.model_name, weight.name + ".weight");
    EXPECT_EQ(weight.offset % 64, 0u);
    for (uint64_t at = 0; at < weight.bytes; ++at)
      ASSERT_EQ(engine->weights()[weight.offset + at], patternByte(i, at));
  }
  EXPECT_TRUE(engine->verifySections());
  uint64_t done = 0, total = 0;
  EXPECT_TRUE(engine->verifyWeights([&](uint64_t now, uint64_t all) {
    done = now;
    total = all;
  }));
  EXPECT_EQ(done, written->weightBytes);
  EXPECT_EQ(total, written->weightBytes);
}

TEST(EngineRoundTrip, NamesPhasesThatItLacks) {
  TempDir dir;
  ASSERT_TRUE(codegen::writeEngine(dir.path("e"), tinyDescription()));
  auto text = openOrFail(dir.path("e"))->ir("fuse");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, runtime::ErrorKind::NotFound);
  EXPECT_THAT(text.error().message,
              HasSubstr("'fuse'; it has canonicalize, plan-memory"));
}

TEST(EngineRoundTrip, SameInputGivesSameBytes) {
  TempDir dir;
  auto key = runtime::SigningKey::fromSeed({7});
  ASSERT_TRUE(key);
  codegen::WriteOptions options;
  options.signer = &*key;
  for (const char *name : {"a", "b"})
    ASSERT_TRUE(
        codegen::writeEngine(dir.path(name), tinyDescription(), options));
  ASSERT_TRUE(codegen::writeEngine(dir.path("unsigned"), tinyDescription()));
  Bytes first = readBytes(dir.path("a"));
  EXPECT_EQ(first, readBytes(dir.path("b")));
  // A signature changes the trailer only.
  Bytes plain = readBytes(dir.path("unsigned"));
  ASSERT_EQ(plain.size(), first.size());
  size_t body = plain.size() - runtime::engineTrailerBytes;
  EXPECT_TRUE(std::equal(plain.begin(), plain.begin() + body, first.begin()));
  EXPECT_NE(plain, first);
}

TEST(EngineRoundTrip, ReportsProgressOverAllWeights) {
  TempDir dir;
  codegen::WriteOptions options;
  uint64_t last = 0, all = 0;
  std::vector<std::string> names;
  options.progress = [&](std::string_view name, uint64_t done, uint64_t total) {
    EXPECT_GT(done, last);
    last = done;
    all = total;
    if (names.empty() || names.back() != name)
      names.emplace_back(name);
  };
  ASSERT_TRUE(codegen::writeEngine(dir.path("e"), tinyDescription(), options));
  EXPECT_EQ(last, all);
  EXPECT_THAT(names, ElementsAre("token_embd", "output_norm", "blk.0.attn_q"));
}

TEST(EngineRoundTrip, WorksWithoutCacheAndTokenizer) {
  TempDir dir;
  auto description = tinyDescription();
  description.kvGroups.clear();
  description.tokenizer.reset();
  auto &launches = description.programs[0].entries[0]->launches;
  launches.pop_back(); // the attention, which needs the cache
  auto written = codegen::writeEngine(dir.path("e"), description);
  ASSERT_TRUE(written) << written.error().message;
  auto engine = openOrFail(dir.path("e"));
  ASSERT_TRUE(engine);
  EXPECT_FALSE(engine->manifest().kv());
  auto tokenizer = engine->tokenizer();
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().kind, runtime::ErrorKind::NotFound);
}

TEST(EngineRoundTrip, WeightsOfManyChunksKeepTheirBytes) {
  TempDir dir;
  auto description = tinyDescription();
  // 3 MiB and a bit, in one piece, so that a piece spans chunks.
  uint64_t rows = 3 * 8192 + 5;
  auto bytes = std::make_shared<Bytes>(rows * 128);
  for (uint64_t i = 0; i < bytes->size(); ++i)
    (*bytes)[i] = patternByte(9, i);
  description.weights.push_back(
      {"big", "big.weight", kernels::Format::F32, "rows", rows, 32,
       [bytes](const codegen::ByteSink &sink) { return sink(*bytes); }});
  auto written = codegen::writeEngine(dir.path("e"), description);
  ASSERT_TRUE(written) << written.error().message;
  auto engine = openOrFail(dir.path("e"));
  ASSERT_TRUE(engine);
  auto found = engine->weights().last(bytes->size());
  EXPECT_TRUE(std::equal(found.begin(), found.end(), bytes->begin()));
  int reports = 0;
  EXPECT_TRUE(engine->verifyWeights([&](uint64_t, uint64_t) { ++reports; }));
  EXPECT_EQ(reports, 4);

  // The weight's name and the chunk are told, and that of no other chunk.
  Bytes file = readBytes(dir.path("e"));
  uint64_t at = uint64_t(std::search(file.begin(), file.end(), bytes->begin(),
                                     bytes->begin() + 64) -
                         file.begin()) +
                2 * runtime::weightChunkBytes;
  file[at] ^= 1;
  dir.write("damaged", file);
  auto verified = openOrFail(dir.path("damaged"))->verifyWeights();
  ASSERT_FALSE(verified);
  EXPECT_THAT(verified.error().message, HasSubstr("chunk 2 of the weights"));
  EXPECT_THAT(verified.error().message, HasSubstr("'big'"));
  EXPECT_THAT(verified.error().message, testing::Not(HasSubstr("token_embd")));
}

/// A failed write leaves nothing behind, and an old engine as it was.
void expectNothingWritten(const codegen::EngineDescription &description,
                          const char *message) {
  TempDir dir;
  std::string path = dir.write("old.lathe", "old");
  auto written = codegen::writeEngine(path, description);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr(message));
  EXPECT_THAT(written.error().message, HasSubstr("old.lathe"));
  EXPECT_THAT(dir.entries(), ElementsAre("old.lathe"));
  EXPECT_EQ(readFile(path), "old");
}

TEST(EngineWriter, RefusesProducersThatGiveTheWrongSize) {
  auto description = tinyDescription();
  description.weights[1].produce = patternProducer(1, 127);
  expectNothingWritten(description,
                       "'output_norm': its source gives 127 bytes, expected "
                       "128");
  description.weights[1].produce = patternProducer(1, 129);
  expectNothingWritten(description,
                       "'output_norm': its source gives 129 bytes, expected "
                       "128");
}

TEST(EngineWriter, PassesOnErrorsOfProducers) {
  auto description = tinyDescription();
  description.weights[2].produce =
      [](const codegen::ByteSink &) -> runtime::Result<void> {
    return runtime::fail(runtime::ErrorKind::InvalidInput, "no such tensor");
  };
  expectNothingWritten(description, "no such tensor");
}

TEST(EngineWriter, RefusesShapesOutsideTheFormat) {
  auto description = tinyDescription();
  description.weights[2].k = 33;
  expectNothingWritten(description, "'blk.0.attn_q': 32 x 33 of Q4_0");
  description.weights[2].k = uint64_t(1) << 62;
  expectNothingWritten(description, "has no whole number of bytes");
}

TEST(EngineWriter, RefusesWhatAReaderWouldRefuse) {
  auto description = tinyDescription();
  description.targets[1].program = 1;
  expectNothingWritten(description, "a reader would refuse the engine: target "
                                    "'cpu:avx2': program is 1");
}

} // namespace
} // namespace lathe::tests

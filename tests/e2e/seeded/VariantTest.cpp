// Seeded models with something changed: what an architecture must accept, and
// what it must refuse by name.
#include "tests/e2e/seeded/EditModel.h"
#include "tests/e2e/seeded/SeededModel.h"
#include "tests/e2e/support/Evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::tests;
using frontend::GgufFile;
using frontend::GgufTensor;
using testing::HasSubstr;

namespace {

/// The error of importing a model; empty if there is none.
std::string importError(const std::string &model, const TempDir &temp) {
  codegen::CompileOptions options;
  options.output = temp.path("graph.mlir");
  options.stopAfter = "canonicalize";
  auto result = latheCompiler()->compile(model, options);
  return result ? "" : result.error().message;
}

std::string errorOf(const std::string &name, const Edit &edit) {
  TempDir temp;
  return importError(copyModel(temp, name, edit), temp);
}

auto is(std::string name) {
  return [name](std::string_view other) { return other == name; };
}

template <typename T>
Edit replaceKey(const std::string &key,
                GgufWriter &(GgufWriter::*put)(std::string_view, T), T value) {
  return {is(key), [=](GgufWriter &writer, const GgufFile &) {
            (writer.*put)(key, value);
          }};
}

TEST(Variant, AnUneditedCopyIsAccepted) {
  for (const char *name : {"llama-gqa", "qwen2-gqa", "qwen3-gqa", "gemma3-gqa"})
    EXPECT_EQ(errorOf(name, {}), "");
}

TEST(Variant, AnUnknownArchitectureIsNamedWithTheKnownOnes) {
  EXPECT_THAT(errorOf("llama-gqa", replaceKey<std::string_view>(
                                       "general.architecture",
                                       &GgufWriter::string, "mamba")),
              HasSubstr("architecture 'mamba' is not supported; known are "
                        "gemma3, llama, qwen2, qwen3"));
}

// B14: the output matrix may be missing, nothing else.
TEST(Variant, EveryMissingTensorIsNamed) {
  for (const char *name : {"llama-gqa", "qwen3-gqa", "gemma3-gqa"}) {
    auto file = GgufFile::open(seededPath(name));
    ASSERT_TRUE(file.has_value()) << file.error().message;
    for (const GgufTensor &tensor : file->tensors()) {
      std::string missing(tensor.name);
      std::string error = errorOf(name, {is(missing)});
      if (missing == "output.weight")
        EXPECT_EQ(error, "");
      else
        EXPECT_THAT(error, HasSubstr("'" + missing + "'")) << name;
    }
  }
}

TEST(Variant, ATensorWithoutAPlaceIsNamed) {
  for (const char *extra : {"blk.0.attn_sinks.weight", "blk.2.attn_norm.bias",
                            "blk.9.attn_q.bias", "cls.output.weight"})
    EXPECT_THAT(errorOf("qwen3-gqa",
                        {.add =
                             [&](GgufWriter &writer, const GgufFile &file) {
                               putTensor(
                                   writer, extra,
                                   *file.findTensor("output_norm.weight"));
                             }}),
                HasSubstr(std::string("'") + extra + "' has no place"));
}

TEST(Variant, HyperParametersThatCannotBeAreRefused) {
  auto u32 = [](const std::string &key, uint32_t value) {
    return replaceKey<uint32_t>(key, &GgufWriter::u32, value);
  };
  auto text = [](const std::string &key, std::string_view value) {
    return replaceKey<std::string_view>(key, &GgufWriter::string, value);
  };
  struct Row {
    const char *model;
    Edit edit;
    const char *error;
  };
  std::vector<Row> rows = {
      {"llama-gqa", u32("llama.attention.head_count_kv", 3), "no multiple"},
      {"llama-gqa", u32("llama.attention.head_count", 0), "head_count' is 0"},
      {"llama-gqa", u32("llama.block_count", 5), "'blk.4.attn_norm.weight'"},
      {"llama-gqa", u32("llama.block_count", 3), "has no place"},
      {"llama-gqa", u32("llama.embedding_length", 96), "64, but"},
      {"llama-gqa", u32("llama.attention.key_length", 32), "hyper-parameters"},
      {"llama-gqa", u32("llama.attention.value_length", 8), "not supported"},
      {"llama-gqa", u32("llama.rope.dimension_count", 18), "at most"},
      {"llama-gqa", u32("llama.rope.dimension_count", 7), "even"},
      {"llama-rope-linear", text("llama.rope.scaling.type", "longrope"),
       "'longrope' is not supported"},
      {"gemma3-rope-linear", text("gemma3.rope.scaling.type", "yarn"),
       "'yarn' is not supported for gemma3"},
      {"gemma3-pattern-array", u32("gemma3.block_count", 3),
       "has 4 entries for 3 layers"},
      {"llama-gqa", u32("llama.block_count", 65535), "at most 4096"},
      {"gemma3-gqa", u32("gemma3.attention.key_length", 1 << 20),
       "at most 4096"},
      {"llama-gqa", {is("llama.context_length")}, "llama.context_length"},
      {"llama-gqa", {is("general.architecture")}, "general.architecture"},
  };
  for (const Row &row : rows)
    EXPECT_THAT(errorOf(row.model, row.edit), HasSubstr(row.error));
}

TEST(Variant, AHugeTrainedContextIsCutWithANotice) {
  TempDir temp;
  codegen::CompileOptions options;
  options.output = temp.path("graph.mlir");
  options.stopAfter = "canonicalize";
  std::vector<std::string> notices;
  options.onNotice = [&](std::string_view text) { notices.emplace_back(text); };
  auto model = copyModel(temp, "llama-gqa",
                         replaceKey<uint32_t>("llama.context_length",
                                              &GgufWriter::u32, 4294967295u));
  auto result = latheCompiler()->compile(model, options);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_THAT(notices, testing::ElementsAre(
                           HasSubstr("131072 of the 4294967295 positions")));
  EXPECT_THAT(readFile(options.output), HasSubstr("tensor<131072x8x2xf32>"));
}

/// The distance of a model's F32 logits from the golden ones of `name`.
f64 distance(const std::string &model, const std::string &name) {
  TempDir temp;
  std::vector<std::string> isas = {nativeIsas().back()};
  auto compiled = compileModel(model, temp.path("x.lathe"), isas, "f32");
  EXPECT_TRUE(compiled.has_value()) << compiled.error().message;
  auto engine = loadEngine(temp.path("x.lathe"), isas[0]);
  EXPECT_TRUE(engine.has_value()) << engine.error().message;
  Golden golden = readGolden(name);
  auto logits = logitsOf(*engine, golden.tokens, 0, 512, 1);
  EXPECT_TRUE(logits.has_value()) << logits.error().message;
  return nmseOf(*logits, golden);
}

// That the comparison with llama.cpp means something: each option, a little
// off, is far outside its bound.
TEST(VariantLogits, GoldenRowsSeeSmallChanges) {
  auto u32 = [](const std::string &key, uint32_t value) {
    return replaceKey<uint32_t>(key, &GgufWriter::u32, value);
  };
  auto f32 = [](const std::string &key, float value) {
    return replaceKey<float>(key, &GgufWriter::f32, value);
  };
  std::vector<std::pair<const char *, Edit>> rows = {
      {"gemma3-window-odd", u32("gemma3.attention.sliding_window", 36)},
      {"gemma3-window-odd", u32("gemma3.attention.sliding_window_pattern", 2)},
      {"gemma3-default-pattern",
       u32("gemma3.attention.sliding_window_pattern", 7)},
      {"gemma3-gqa", f32("gemma3.rope.freq_base", 9e5f)},
      {"gemma3-rope-bases", f32("gemma3.rope.freq_base_swa", 510)},
      {"gemma3-rope-linear", f32("gemma3.rope.scaling.factor", 4.1f)},
      {"gemma3-softcap", f32("gemma3.final_logit_softcapping", 8.1f)},
      {"gemma3-attention-softcap", f32("gemma3.attn_logit_softcapping", 2.1f)},
      {"llama-rope-yarn",
       u32("llama.rope.scaling.original_context_length", 100)},
      {"llama-rope-yarn-attn-factor",
       f32("llama.rope.scaling.attn_factor", 1.26f)},
      {"llama-rope-llama3", {is("rope_freqs.weight")}},
      {"llama-bias", {is("blk.3.attn_v.bias")}},
      {"llama-ffn-bias", {is("blk.3.ffn_up.bias")}},
      {"qwen2-gqa", {is("blk.3.attn_k.bias")}},
      {"qwen3-gqa", f32("qwen3.attention.layer_norm_rms_epsilon", 3.1e-3f)},
  };
  for (const auto &[name, edit] : rows) {
    TempDir temp;
    EXPECT_GT(distance(copyModel(temp, name, edit), name), 10 * nmseMax)
        << name;
  }
}

// B14: tied, or stored twice: the same bits.
TEST(VariantLogits, ATiedHeadEqualsAnExplicitCopy) {
  TempDir temp;
  Golden golden = readGolden("llama-tied");
  std::string copy = copyModel(
      temp, "llama-tied", {.add = [](GgufWriter &writer, const GgufFile &file) {
        putTensor(writer, "output.weight",
                  *file.findTensor("token_embd.weight"));
      }});
  std::vector<std::string> isas = {"generic"};
  std::vector<std::vector<f32>> logits;
  std::vector<u64> bytes;
  for (const std::string &model : {seededPath("llama-tied"), copy}) {
    auto compiled = compileModel(model, temp.path("x.lathe"), isas, "f32");
    ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
    bytes.push_back(compiled->weightBytes);
    auto engine = loadEngine(temp.path("x.lathe"), "generic");
    ASSERT_TRUE(engine.has_value()) << engine.error().message;
    auto values = logitsOf(*engine, golden.tokens, 0, 64, 1);
    ASSERT_TRUE(values.has_value()) << values.error().message;
    logits.push_back(std::move(*values));
  }
  EXPECT_EQ(logits[0], logits[1]);
  // A tied matrix exists once.
  EXPECT_GE(bytes[1] - bytes[0], u64(512) * 64 * 4);
}

} // namespace

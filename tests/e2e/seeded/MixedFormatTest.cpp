// Blocks whose matrices have different formats, as K-quant mixes have them:
// segments that cannot be paired, products of rounded and of unrounded
// activations side by side.
#include "tests/e2e/seeded/EditModel.h"
#include "tests/e2e/seeded/SeededModel.h"
#include "tests/e2e/support/Evaluate.h"

#include <gtest/gtest.h>
#include <map>

using namespace lathe;
using namespace lathe::tests;
using frontend::GgufFile;
using frontend::GgufTensor;

namespace {

/// Format of each matrix of a block; those not named are Q4_K.
using Mix = std::map<std::string, std::string>;

constexpr const char *base = "format-q4-k";

/// The base model with matrices of the other format models in their place.
std::string makeMix(const TempDir &temp, const Mix &mix, bool asF32) {
  std::map<std::string, GgufFile> donors;
  for (const auto &[matrix, format] : mix) {
    auto file = GgufFile::open(seededPath("format-" + format));
    if (!file)
      throw std::runtime_error(file.error().message);
    donors.emplace(format, std::move(*file));
  }
  return copyModel(
      temp, base,
      {.drop = [](std::string_view name) { return name.ends_with(".weight"); },
       .add =
           [&](GgufWriter &writer, const GgufFile &file) {
             for (const GgufTensor &tensor : file.tensors()) {
               const GgufTensor *source = &tensor;
               for (const auto &[matrix, format] : mix)
                 if (tensor.name.ends_with("." + matrix + ".weight"))
                   source = donors.at(format).findTensor(tensor.name);
               putTensor(writer, tensor.name, *source, asF32);
             }
           }});
}

/// Logits of a model in F32 KV; the same bits in some manners of evaluation.
std::vector<f32> evaluate(const std::string &model, const TempDir &temp) {
  std::vector<std::string> isas = {nativeIsas().back()};
  // Mixes are here for the paths that are slower.
  auto compiled =
      compileModel(model, temp.path("x.lathe"), isas, "f32", /*strict=*/false);
  EXPECT_TRUE(compiled.has_value()) << compiled.error().message;
  auto engine = loadEngine(temp.path("x.lathe"), isas[0]);
  EXPECT_TRUE(engine.has_value()) << engine.error().message;
  std::vector<i32> tokens = readGolden(base).tokens;
  auto logits = logitsOf(*engine, tokens, 0, 512, 1);
  EXPECT_TRUE(logits.has_value()) << logits.error().message;
  for (u32 chunk : {1u, 7u}) {
    auto other = logitsOf(*engine, tokens, 0, chunk, 2);
    EXPECT_TRUE(other.has_value()) << other.error().message;
    EXPECT_EQ(*logits, *other) << "chunk " << chunk;
  }
  return *logits;
}

TEST(MixedFormats, CloseToTheSameWeightsInF32) {
  const Mix mixes[] = {
      // K-quant "M" files: larger v and down.
      {{"attn_v", "q6-k"}, {"ffn_down", "q6-k"}},
      {{"ffn_gate", "q8-0"}, {"attn_k", "q5-1"}, {"attn_output", "q3-k"}},
      // Floats and blocks over the same input.
      {{"attn_q", "f16"}, {"ffn_up", "f16"}, {"ffn_down", "bf16"}},
      {{"attn_v", "bf16"}, {"ffn_gate", "bf16"}, {"attn_output", "f16"}},
      // Two float formats.
      {{"attn_q", "f16"},
       {"attn_k", "bf16"},
       {"attn_v", "f16"},
       {"ffn_gate", "f16"},
       {"ffn_up", "bf16"}},
  };
  for (const Mix &mix : mixes) {
    std::string names;
    for (const auto &[matrix, format] : mix)
      names += matrix + " " + format + ", ";
    SCOPED_TRACE(names);
    TempDir temp;
    std::vector<f32> mixed = evaluate(makeMix(temp, mix, false), temp);
    std::vector<f32> exact = evaluate(makeMix(temp, mix, true), temp);
    ASSERT_EQ(mixed.size(), exact.size());
    f64 error = 0, total = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      f64 difference = f64(mixed[i]) - f64(exact[i]);
      error += difference * difference;
      total += f64(exact[i]) * f64(exact[i]);
    }
    // As the models of one format.
    EXPECT_LE(error / total, 0.01);
  }
}

} // namespace

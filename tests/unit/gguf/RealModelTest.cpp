// Real models, if LATHE_MODELS names the folder that holds them.
#include "frontend/gguf/GgufFile.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <set>

using namespace lathe::frontend;
using lathe::kernels::Format;

namespace {

struct Expected {
  const char *file;
  const char *architecture;
  size_t tensors;
  uint32_t layers;
  std::set<Format> formats;
};

void PrintTo(const Expected &expected, std::ostream *out) {
  *out << expected.file;
}

class RealModelTest : public testing::TestWithParam<Expected> {};

TEST_P(RealModelTest, OpensWithFiniteWeights) {
  const char *folder = std::getenv("LATHE_MODELS");
  std::string path = folder ? std::string(folder) + "/" + GetParam().file : "";
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << "SKIPPED, NOT TESTED: set LATHE_MODELS to the folder that "
                    "holds "
                 << GetParam().file;
  auto file = GgufFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  std::string architecture(file->getString("general.architecture").value());
  EXPECT_EQ(architecture, GetParam().architecture);
  EXPECT_EQ(file->tensors().size(), GetParam().tensors);
  EXPECT_EQ(file->getU32(architecture + ".block_count").value(),
            GetParam().layers);
  auto tokens = file->getStringArray("tokenizer.ggml.tokens");
  ASSERT_TRUE(tokens);
  const GgufTensor *embed = file->findTensor("token_embd.weight");
  ASSERT_NE(embed, nullptr);
  EXPECT_EQ(embed->rows(), tokens->size());
  EXPECT_EQ(embed->k(),
            file->getU32(architecture + ".embedding_length").value());
  std::set<Format> formats;
  for (const GgufTensor &tensor : file->tensors()) {
    formats.insert(tensor.format);
    auto checked = file->checkBlocks(tensor);
    EXPECT_TRUE(checked) << checked.error().message;
  }
  EXPECT_EQ(formats, GetParam().formats);
}

INSTANTIATE_TEST_SUITE_P(
    Models, RealModelTest,
    testing::Values(Expected{"SmolLM2-135M-Instruct.Q4_1.gguf",
                             "llama",
                             272,
                             30,
                             {Format::F32, Format::Q4_1, Format::Q8_0}},
                    Expected{"gemma-3-270m-Q4_K_M.gguf",
                             "gemma3",
                             236,
                             18,
                             {Format::F32, Format::Q5_0, Format::Q8_0,
                              Format::Q4_K, Format::Q6_K}}));

} // namespace

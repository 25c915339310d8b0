/// \file
/// The interpreter itself against an independent oracle: llama.cpp's logits of
/// the seeded models with F32 weights (tests/golden/README.md).
#include "tests/unit/interpreter/Fixture.h"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace lathe;
using namespace lathe::tests;
using lathe::ir::Tensor;

namespace {

std::string golden(const std::string &name) {
  const char *source = std::getenv("LATHE_SOURCE_DIR");
  return std::string(source ? source : ".") + "/tests/golden/seeded/" + name;
}

nlohmann::json readJson() {
  std::ifstream file(golden("golden.json"));
  return nlohmann::json::parse(file);
}

class InterpreterGolden : public InterpreterTest,
                          public testing::WithParamInterface<const char *> {};

TEST_P(InterpreterGolden, LogitsAreLlamaCpps) {
  SeededModel model = loadSeeded(context, GetParam());
  ASSERT_TRUE(model.module);
  nlohmann::json facts = readJson();
  auto tokens = facts["tokens"].get<std::vector<int32_t>>();
  auto positions = facts["logits_positions"].get<std::vector<int64_t>>();
  ir::Interpreter interpreter(*model.module, *model.weights);
  auto answer = runSequence(interpreter, tokens);
  ASSERT_TRUE(answer) << messages;

  std::vector<float> rows, expected(positions.size() * 512);
  for (int64_t position : positions) {
    auto row =
        answer->logits.f32().subspan(static_cast<size_t>(position) * 512, 512);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  std::ifstream file(golden(std::string("golden/") + GetParam() + ".f32"),
                     std::ios::binary);
  file.read(reinterpret_cast<char *>(expected.data()),
            static_cast<std::streamsize>(expected.size() * sizeof(float)));
  ASSERT_TRUE(file);
  auto count = static_cast<int64_t>(rows.size());
  EXPECT_LT(ir::nmse(Tensor::floats({count}, rows),
                     Tensor::floats({count}, expected)),
            1e-9);
}

// One of each kind of op and option; the engines' tests cover all models.
INSTANTIATE_TEST_SUITE_P(Seeded, InterpreterGolden,
                         testing::Values("llama-gqa", "llama-odd-sizes",
                                         "llama-bias", "llama-rope-llama3",
                                         "llama-rope-yarn", "qwen2-gqa",
                                         "qwen3-gqa", "gemma3-window-odd",
                                         "gemma3-softcap", "format-q4-k"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace

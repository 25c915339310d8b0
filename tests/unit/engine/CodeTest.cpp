/// \file
/// Choosing a target and loading its code.
#include "tests/unit/engine/TinyEngine.h"

#include <cstdlib>
#include <gmock/gmock.h>

namespace lathe::tests {
namespace {

using runtime::CpuFeatures;
using runtime::ErrorKind;
using testing::AllOf;
using testing::HasSubstr;

/// A CPU with AVX2, FMA and F16C and nothing newer.
CpuFeatures avx2Cpu() {
  runtime::CpuRegisters registers;
  registers.leaf1.ecx = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29;
  registers.leaf7.ebx = 1u << 5;
  registers.xcr0 = 6;
  return CpuFeatures::fromRegisters(registers);
}

/// Sets an environment variable while it lives.
class Variable {
public:
  Variable(const char *name, const char *value) : name(name) {
    ::setenv(name, value, 1);
  }
  ~Variable() { ::unsetenv(name); }

private:
  const char *name;
};

class EngineCode : public testing::Test {
protected:
  void SetUp() override { ::unsetenv("LATHE_ISA"); }

  std::shared_ptr<const runtime::Engine>
  make(const codegen::EngineDescription &description) {
    auto written = codegen::writeEngine(dir.path("tiny.lathe"), description);
    EXPECT_TRUE(written) << written.error().message;
    return openOrFail(dir.path("tiny.lathe"));
  }

  TempDir dir;
};

TEST_F(EngineCode, RunsFromTheFile) {
  auto engine = make(tinyDescription());
  auto code = engine->loadCode(0, CpuFeatures());
  ASSERT_TRUE(code) << code.error().message;
  f32 hidden = 0, logits = 0;
  StepArgs args = {};
  args.hidden = &hidden;
  args.logits = &logits;
  ASSERT_TRUE(code->entry("body"));
  code->entry("body")(&args, 3, 4);
  EXPECT_EQ(hidden, 44.0f);
  ASSERT_TRUE(code->entry("head"));
  code->entry("head")(&args, 0, 1);
  EXPECT_EQ(logits, 2.0f);
  EXPECT_EQ(code->entry("pick"), nullptr);
  ASSERT_EQ(code->kernelCount(), 3u);
  code->kernel(2)(&args, nullptr, 5, 0, 1);
  EXPECT_EQ(logits, 305.0f);
}

TEST_F(EngineCode, SurvivesTheEngineAndLoadsManyTimes) {
  // Descriptor numbers come round; the code of an earlier load must not.
  std::optional<runtime::CpuCode> kept;
  for (int i = 0; i < 40; ++i) {
    auto code = make(tinyDescription())->loadCode(0, CpuFeatures());
    ASSERT_TRUE(code) << code.error().message;
    if (i == 0)
      kept = std::move(*code);
    else
      EXPECT_NE(reinterpret_cast<void *>(code->entry("head")),
                reinterpret_cast<void *>(kept->entry("head")));
  }
  f32 logits = 0;
  StepArgs args = {};
  args.logits = &logits;
  kept->entry("head")(&args, 0, 1);
  EXPECT_EQ(logits, 2.0f);
}

TEST_F(EngineCode, CannotBeChangedInMemoryFile) {
  // The mapping of the code is backed by a file that is sealed: nothing in
  // /proc/self/maps is writable and executable at once.
  auto code = make(tinyDescription())->loadCode(0, CpuFeatures());
  ASSERT_TRUE(code);
  std::istringstream maps(readFile("/proc/self/maps"));
  bool seen = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("lathe-code") == std::string::npos)
      continue;
    seen = true;
    EXPECT_EQ(line.find("wx"), std::string::npos) << line;
  }
  EXPECT_TRUE(seen);
}

TEST_F(EngineCode, NeedsItsFeatures) {
  auto engine = make(tinyDescription());
  auto code = engine->loadCode(1, CpuFeatures());
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().kind, ErrorKind::Environment);
  EXPECT_THAT(code.error().message,
              AllOf(HasSubstr("tiny.lathe: "), HasSubstr("cpu:avx2"),
                    HasSubstr("avx2, fma, f16c"), HasSubstr("--target")));
}

TEST_F(EngineCode, NamesTheSymbolThatIsMissing) {
  auto description = tinyDescription();
  description.targets[0].object = readBytes(LATHE_TEST_CODE_LACKING);
  auto code = make(description)->loadCode(0, CpuFeatures());
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message,
              AllOf(HasSubstr("cpu:generic"), HasSubstr("'lathe_head_v1'")));

  description = tinyDescription();
  auto &kernels = description.programs[0].kernels;
  kernels.push_back(kernel("k3", "gemm", "x"));
  code = make(description)->loadCode(0, CpuFeatures());
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message, HasSubstr("'lathe_kernel_3'"));
}

TEST_F(EngineCode, IsASharedObjectForX86) {
  Bytes object = readBytes(LATHE_TEST_CODE);
  struct Case {
    size_t at;
    uint8_t value;
  };
  // Magic, class, byte order, type (ET_EXEC), machine (AArch64).
  for (Case change :
       {Case{0, 0}, Case{4, 1}, Case{5, 2}, Case{16, 2}, Case{18, 183}}) {
    auto description = tinyDescription();
    description.targets[0].object[change.at] = change.value;
    auto code = make(description)->loadCode(0, CpuFeatures());
    ASSERT_FALSE(code) << change.at;
    EXPECT_EQ(code.error().kind, ErrorKind::InvalidInput);
    EXPECT_THAT(code.error().message, HasSubstr("not a shared object"));
  }
  for (size_t size : {1, 63, 64}) {
    auto description = tinyDescription();
    description.targets[0].object.resize(size);
    EXPECT_FALSE(make(description)->loadCode(0, CpuFeatures())) << size;
  }
}

TEST_F(EngineCode, BestLayerIsChosen) {
  auto engine = make(tinyDescription());
  EXPECT_EQ(*engine->selectTarget(avx2Cpu()), 1u);
  EXPECT_EQ(*engine->selectTarget(CpuFeatures()), 0u);
  // Whatever the order in the file.
  auto description = tinyDescription();
  std::swap(description.targets[0], description.targets[1]);
  EXPECT_EQ(*make(description)->selectTarget(avx2Cpu()), 0u);
}

TEST_F(EngineCode, LayerCanBeForced) {
  auto engine = make(tinyDescription());
  EXPECT_EQ(*engine->selectTarget(avx2Cpu(), "generic"), 0u);
  EXPECT_EQ(*engine->selectTarget(avx2Cpu(), "cpu:generic"), 0u);
  Variable variable("LATHE_ISA", "generic");
  EXPECT_EQ(*engine->selectTarget(avx2Cpu()), 0u);
  EXPECT_EQ(*engine->selectTarget(avx2Cpu(), "avx2"), 1u);
}

TEST_F(EngineCode, ErrorsListWhatThereIsAndWhatIsMissing) {
  auto engine = make(tinyDescription());
  auto chosen = engine->selectTarget(CpuFeatures(), "avx2");
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().kind, ErrorKind::Environment);
  EXPECT_THAT(
      chosen.error().message,
      HasSubstr("no code for 'avx2' that fits this CPU: it has cpu:generic, "
                "cpu:avx2 (this CPU lacks avx2, fma, f16c); compile the model "
                "again with --target cpu:native"));
  Variable variable("LATHE_ISA", "avx512");
  chosen = engine->selectTarget(avx2Cpu());
  ASSERT_FALSE(chosen);
  EXPECT_THAT(chosen.error().message,
              AllOf(HasSubstr("'avx512'"), HasSubstr("or unset LATHE_ISA")));
}

TEST_F(EngineCode, UnknownLayersAndFeaturesAreNotRun) {
  auto description = tinyDescription();
  description.targets[0].isa = "avx1024";
  description.targets[1].requiredFeatures.push_back("avx99");
  auto chosen = make(description)->selectTarget(avx2Cpu());
  ASSERT_FALSE(chosen);
  EXPECT_THAT(
      chosen.error().message,
      AllOf(HasSubstr("unknown to this version"), HasSubstr("lacks avx99")));
}

} // namespace
} // namespace lathe::tests

/// \file
/// Every pass of the graph keeps its meaning: the interpreter gives the same
/// values before and after, within a bound that says what the pass may change.
#include "passes/Passes.h"
#include "tests/unit/interpreter/Fixture.h"

#include "mlir/Transforms/Passes.h"

#include <numeric>

using namespace lathe;
using namespace lathe::tests;
using lathe::ir::Interpreter;

namespace {

/// What rounding in f32 in another order may do.
constexpr double rounding = 1e-11;

struct Case {
  const char *model;
  /// The squared error that int8 activations may cause, relative to the
  /// logits' power (llama.cpp's own is in golden.json, `peer_nmse`); 0 if no
  /// weight is quantized.
  double quantization;
};

void PrintTo(const Case &model, std::ostream *out) { *out << model.model; }

class PassEquivalence : public InterpreterTest,
                        public testing::WithParamInterface<Case> {
protected:
  void SetUp() override {
    model = loadSeeded(context, GetParam().model);
    ASSERT_TRUE(model.module);
    // More than the smallest window (37) and two pages of the cache.
    tokens = someTokens(45);
  }

  std::optional<Answer> sequence() {
    Interpreter interpreter(*model.module, *model.weights);
    return runSequence(interpreter, tokens);
  }
  std::optional<Answer> steps(const std::vector<size_t> &chunks) {
    Interpreter interpreter(*model.module, *model.weights);
    return runSteps(interpreter, tokens, chunks);
  }

  /// Runs a pass and compares the whole sequence before and after.
  void expectSame(std::unique_ptr<mlir::Pass> pass, double bound) {
    auto before = sequence();
    runPass(*model.module, std::move(pass));
    auto after = sequence();
    ASSERT_TRUE(before && after) << messages;
    EXPECT_LE(ir::nmse(after->hidden, before->hidden), bound);
    EXPECT_LE(ir::nmse(after->logits, before->logits), bound);
  }

  template <typename Op> int64_t count() {
    int64_t found = 0;
    model.module->walk([&](Op) { ++found; });
    return found;
  }

  SeededModel model;
  std::vector<int32_t> tokens;
};

TEST_P(PassEquivalence, Canonicalize) {
  expectSame(mlir::createCanonicalizerPass(), 0);
}

TEST_P(PassEquivalence, FuseAttention) {
  expectSame(passes::createFuseAttention(), rounding);
  EXPECT_GT(count<ir::AttentionOp>(), 0);
  EXPECT_EQ(count<ir::SoftmaxOp>(), 0);
}

TEST_P(PassEquivalence, MergeLinears) {
  expectSame(passes::createMergeLinears(), 0);
  EXPECT_GT(count<ir::MergedLinearOp>(), 0);
}

TEST_P(PassEquivalence, QuantizeActivations) {
  expectSame(passes::createQuantizeActivations(), GetParam().quantization);
  EXPECT_EQ(count<ir::QuantizeRowsOp>() > 0, GetParam().quantization > 0);
}

TEST_P(PassEquivalence, KvCacheLayout) {
  runPass(*model.module, passes::createFuseAttention());
  auto whole = sequence();
  ASSERT_TRUE(whole);
  mlir::OwningOpRef<mlir::ModuleOp> fused = model.module->clone();
  // What a cache loses: in f32 nothing; f16 rounds by 2^-11, bf16 by 2^-8, int8
  // by up to 1/254 of a head's largest value, twice: keys, then values.
  const std::pair<const char *, double> dtypes[] = {
      {"f32", rounding}, {"f16", 1e-5}, {"bf16", 1e-3}, {"int8", 2e-3}};
  for (auto [dtype, bound] : dtypes) {
    model.module = fused->clone();
    passes::KvCacheLayoutOptions options;
    options.dtype = dtype;
    runPass(*model.module, passes::createKvCacheLayout(options));
    std::vector<std::vector<size_t>> all = {{45},
                                            std::vector<size_t>(45, 1),
                                            std::vector<size_t>(15, 3),
                                            {1, 30, 14}};
    std::optional<Answer> first;
    for (const std::vector<size_t> &chunks : all) {
      auto answer = steps(chunks);
      ASSERT_TRUE(answer) << messages;
      EXPECT_LE(ir::nmse(answer->hidden, whole->hidden), bound) << dtype;
      EXPECT_LE(ir::nmse(answer->logits, whole->logits), bound) << dtype;
      if (!first)
        first = answer;
      // However the tokens are cut, the step computes the same.
      EXPECT_EQ(ir::nmse(answer->logits, first->logits), 0) << dtype;
    }
  }
}

TEST_P(PassEquivalence, WholeGraphPipeline) {
  auto before = sequence();
  runPass(*model.module, mlir::createCanonicalizerPass());
  runPass(*model.module, passes::createFuseAttention());
  runPass(*model.module, passes::createMergeLinears());
  runPass(*model.module, passes::createQuantizeActivations());
  passes::KvCacheLayoutOptions options;
  options.dtype = "f32";
  runPass(*model.module, passes::createKvCacheLayout(options));
  auto after = steps({20, 1, 1, 23});
  ASSERT_TRUE(before && after) << messages;
  EXPECT_LE(ir::nmse(after->logits, before->logits),
            GetParam().quantization + rounding);
}

INSTANTIATE_TEST_SUITE_P(
    Models, PassEquivalence,
    testing::Values(Case{"llama-gqa", 0}, Case{"llama-bias", 0},
                    Case{"qwen3-mqa", 0}, Case{"gemma3-window-odd", 0},
                    Case{"gemma3-softcap", 0}, Case{"format-q4-1", 5e-3},
                    Case{"format-q6-k", 5e-3}),
    [](const auto &info) {
      std::string name = info.param.model;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

} // namespace

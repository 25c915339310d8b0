/// \file
/// Each op on values that a person can check.
#include "tests/unit/interpreter/Fixture.h"

#include <cmath>
#include <limits>

using namespace lathe;
using namespace lathe::tests;
using lathe::ir::Interpreter;
using lathe::ir::StepRow;
using lathe::ir::Tensor;
using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

class OpsTest : public InterpreterTest {
protected:
  /// Runs @f of a module whose text this is.
  Tensor run(const std::string &text, std::vector<Tensor> arguments) {
    auto module = parse(text);
    if (!module)
      return {};
    auto results = Interpreter(*module, weights).run("f", std::move(arguments));
    EXPECT_TRUE(mlir::succeeded(results)) << messages;
    return mlir::succeeded(results) ? results->front() : Tensor();
  }

  /// Runs one op from %x (and %y, of the same type) to a result.
  Tensor runOp(const std::string &op, const std::string &type,
               std::vector<Tensor> arguments) {
    std::string parameters = "%x: " + type;
    if (arguments.size() > 1)
      parameters += ", %y: " + type;
    return run("func.func @f(" + parameters + ") -> " + type + " { %r = " + op +
                   " : " + type + " return %r : " + type + " }",
               std::move(arguments));
  }
};

std::vector<float> valuesOf(const Tensor &tensor) {
  return {tensor.f32().begin(), tensor.f32().end()};
}

testing::Matcher<std::vector<float>> near(std::vector<float> expected) {
  return Pointwise(testing::FloatNear(1e-6f), std::move(expected));
}

TEST_F(OpsTest, Elementwise) {
  std::string type = "tensor<?x2xf32>";
  Tensor x = Tensor::floats({2, 2}, {1, -2, 3, 0});
  Tensor y = Tensor::floats({2, 2}, {0.5f, 4, -1, 2});
  EXPECT_THAT(valuesOf(runOp("lathe.add %x, %y", type, {x, y})),
              ElementsAre(1.5f, 2, 2, 2));
  EXPECT_THAT(valuesOf(runOp("lathe.mul %x, %y", type, {x, y})),
              ElementsAre(0.5f, -8, -3, 0));
  EXPECT_THAT(valuesOf(runOp("lathe.scale %x by 0.5", type, {x})),
              ElementsAre(0.5f, -1, 1.5f, 0));
  EXPECT_THAT(valuesOf(runOp("lathe.silu %x", type, {x})),
              near({0.7310586f, -0.2384058f, 2.8577224f, 0}));
  EXPECT_THAT(valuesOf(runOp("lathe.gelu %x", type, {x})),
              near({0.8411920f, -0.0454023f, 2.9963627f, 0}));
  EXPECT_THAT(valuesOf(runOp("lathe.softcap %x cap 2.0", type, {x})),
              near({0.9242343f, -1.5231884f, 1.8102965f, 0}));
  EXPECT_THAT(valuesOf(runOp("lathe.softmax %x", type, {x})),
              near({0.9525741f, 0.0474259f, 0.9525741f, 0.0474259f}));
}

TEST_F(OpsTest, EmbedReadsRowsByToken) {
  weights.floats["w"] = {1, 2, 3, 4, 5, 6};
  Tensor y = run(R"(
    lathe.weight @w : tensor<3x2x!lathe.block<f32, rows>>
        = #lathe.source<file = 0, offset = 0, bytes = 24>
    func.func @f(%t: tensor<?xi32>) -> tensor<?x2xf32> {
      %r = lathe.embed %t, @w : tensor<?xi32> -> tensor<?x2xf32>
      return %r : tensor<?x2xf32>
    })",
                 {Tensor::ints({3}, {2, 0, 2})});
  EXPECT_THAT(valuesOf(y), ElementsAre(5, 6, 1, 2, 5, 6));
}

constexpr const char *linears = R"(
  lathe.weight @w : tensor<2x3x!lathe.block<f32, rows>>
      = #lathe.source<file = 0, offset = 0, bytes = 24>
  lathe.weight @v : tensor<1x3x!lathe.block<f32, rows>>
      = #lathe.source<file = 0, offset = 0, bytes = 12>
  lathe.weight @b : tensor<2xf32> = #lathe.source<file = 0, offset = 0, bytes = 8>
  func.func @f(%x: tensor<?x3xf32>) -> tensor<?x2xf32> {
    %r = lathe.linear %x, @w bias @b : tensor<?x3xf32> -> tensor<?x2xf32>
    return %r : tensor<?x2xf32>
  }
  func.func @merged(%x: tensor<?x3xf32>) -> (tensor<?x1xf32>, tensor<?x2xf32>) {
    %r, %s = lathe.merged_linear %x, [@v, @w] biases [unit, @b]
        : tensor<?x3xf32> -> tensor<?x1xf32>, tensor<?x2xf32>
    return %r, %s : tensor<?x1xf32>, tensor<?x2xf32>
  })";

TEST_F(OpsTest, Linear) {
  weights.floats = {
      {"w", {1, 2, 3, -1, 0, 1}}, {"v", {2, 0, 0}}, {"b", {10, 20}}};
  Tensor x = Tensor::floats({2, 3}, {1, 1, 1, 0, 2, -1});
  EXPECT_THAT(valuesOf(run(linears, {x})), ElementsAre(16, 20, 11, 19));

  auto module = parse(linears);
  auto both = Interpreter(*module, weights).run("merged", {x});
  ASSERT_TRUE(mlir::succeeded(both)) << messages;
  EXPECT_THAT(valuesOf((*both)[0]), ElementsAre(2, 0));
  EXPECT_THAT(valuesOf((*both)[1]), ElementsAre(16, 20, 11, 19));
}

TEST_F(OpsTest, QuantizeRowsGivesTheBlocksOfTheContract) {
  auto module = parse(R"(
    func.func @f(%x: tensor<?x40xf32>) -> tensor<?x40x!lathe.q8> {
      %r = lathe.quantize_rows %x : tensor<?x40xf32> -> tensor<?x40x!lathe.q8>
      return %r : tensor<?x40x!lathe.q8>
    })");
  std::vector<float> row(40);
  row[0] = 127;
  row[1] = 0.5f;  // ties go to even
  row[2] = -1.5f; // likewise
  row[3] = 63.2f;
  row[32] = 1e-31f; // below 2^-100: a zero block
  std::vector<float> second(40);
  second[5] = inf;
  second[33] = -2;
  row.insert(row.end(), second.begin(), second.end());
  auto results =
      Interpreter(*module, weights).run("f", {Tensor::floats({2, 40}, row)});
  ASSERT_TRUE(mlir::succeeded(results)) << messages;
  auto blocks = results->front().q8();
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[0].d, 1.0f);
  EXPECT_EQ(blocks[0].q[0], 127);
  EXPECT_EQ(blocks[0].q[1], 0);
  EXPECT_EQ(blocks[0].q[2], -2);
  EXPECT_EQ(blocks[0].q[3], 63);
  EXPECT_EQ(blocks[1].d, 0.0f);
  EXPECT_TRUE(std::isnan(blocks[2].d));
  EXPECT_EQ(blocks[2].q[5], 0);
  EXPECT_EQ(blocks[3].d, 2.0f / 127);
  EXPECT_EQ(blocks[3].q[1], -127);
  EXPECT_EQ(results->front().numbers()[3], 63.0);
}

TEST_F(OpsTest, LinearOnQuantizedRows) {
  // Q8_0: an f16 scale of 0.5 and the codes 1, 2, 0, …
  std::vector<uint8_t> block(34);
  block[1] = 0x38;
  block[2] = 1;
  block[3] = 2;
  weights.bytes["w"] = block;
  std::vector<float> x(32);
  x[0] = 127;
  x[1] = 3;
  x[2] = 99;
  Tensor y = run(R"(
    lathe.weight @w : tensor<1x32x!lathe.block<q8_0, rows>>
        = #lathe.source<file = 0, offset = 0, bytes = 34>
    func.func @f(%x: tensor<?x32xf32>) -> tensor<?x1xf32> {
      %q = lathe.quantize_rows %x : tensor<?x32xf32> -> tensor<?x32x!lathe.q8>
      %r = lathe.linear %q, @w : tensor<?x32x!lathe.q8> -> tensor<?x1xf32>
      return %r : tensor<?x1xf32>
    })",
                 {Tensor::floats({1, 32}, x)});
  EXPECT_THAT(valuesOf(y), ElementsAre(0.5f * (127 + 2 * 3)));
}

TEST_F(OpsTest, Matmul) {
  Tensor a = Tensor::floats({1, 2, 2}, {1, 2, 3, 4});
  Tensor b = Tensor::floats({1, 2, 2}, {5, 6, 7, 8});
  std::string text = "func.func @f(%a: tensor<1x?x2xf32>, %b: "
                     "tensor<1x2x2xf32>) -> tensor<1x?x2xf32> { %r = "
                     "lathe.matmul %a, %b FLAG : tensor<1x?x2xf32>, "
                     "tensor<1x2x2xf32> -> tensor<1x?x2xf32> return %r : "
                     "tensor<1x?x2xf32> }";
  std::string plain = text, transposed = text;
  plain.replace(plain.find("FLAG"), 4, "");
  transposed.replace(transposed.find("FLAG"), 4, "transpose_b");
  EXPECT_THAT(valuesOf(run(plain, {a, b})), ElementsAre(19, 22, 43, 50));
  EXPECT_THAT(valuesOf(run(transposed, {a, b})), ElementsAre(17, 23, 39, 53));
}

TEST_F(OpsTest, Shapes) {
  Tensor x = Tensor::floats({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  Tensor y = run(R"(
    func.func @f(%x: tensor<?x4xf32>) -> tensor<4x?x2xf32> {
      %h = lathe.reshape %x : tensor<?x4xf32> -> tensor<?x2x2xf32>
      %r = lathe.repeat_heads %h times 2 : tensor<?x2x2xf32> -> tensor<?x4x2xf32>
      %t = lathe.transpose %r : tensor<?x4x2xf32> -> tensor<4x?x2xf32>
      return %t : tensor<4x?x2xf32>
    })",
                 {x});
  EXPECT_THAT(y.shape(), ElementsAre(4, 2, 2));
  EXPECT_THAT(valuesOf(y),
              ElementsAre(0, 1, 4, 5, 0, 1, 4, 5, 2, 3, 6, 7, 2, 3, 6, 7));
}

TEST_F(OpsTest, RmsNormOfRowsAndOfHeads) {
  weights.floats["w"] = {1, 2};
  std::string weight = "lathe.weight @w : tensor<2xf32> = #lathe.source<file = "
                       "0, offset = 0, bytes = 8>\n";
  auto norm = [&](const std::string &type, const Tensor &x) {
    return valuesOf(run(weight + "func.func @f(%x: " + type + ") -> " + type +
                            " { %r = lathe.rms_norm %x, @w epsilon 0.5 : " +
                            type + " return %r : " + type + " }",
                        {x}));
  };
  // mean of squares 3.5, so x / 2 · w.
  std::vector<float> x = {1, std::sqrt(6.0f), 0, 0};
  auto expected = near({0.5f, std::sqrt(6.0f), 0, 0});
  EXPECT_THAT(norm("tensor<?x2xf32>", Tensor::floats({2, 2}, x)), expected);
  EXPECT_THAT(norm("tensor<?x2x2xf32>", Tensor::floats({1, 2, 2}, x)),
              expected);
}

TEST_F(OpsTest, RopeRotatesPairsAndPassesTheRest) {
  // Position 0 turns by nothing, position 1 by a quarter.
  weights.floats["t"] = {1, 0, 1, 0, 0, 1, 0, 1};
  auto rope = [&](const std::string &style) {
    return valuesOf(run(
        R"(lathe.weight @t : tensor<2x2x2xf32> = #lathe.recipe<"rope_table", {}, []>
        func.func @f(%x: tensor<?x1x5xf32>, %p: tensor<?xi32>) -> tensor<?x1x5xf32> {
          %r = lathe.rope %x, %p, @t style <)" +
            style + R"(> : tensor<?x1x5xf32>, tensor<?xi32>
          return %r : tensor<?x1x5xf32>
        })",
        {Tensor::floats({2, 1, 5}, {1, 2, 3, 4, 5, 1, 2, 3, 4, 5}),
         Tensor::ints({2}, {0, 1})}));
  };
  EXPECT_THAT(rope("adjacent"), ElementsAre(1, 2, 3, 4, 5, -2, 1, -4, 3, 5));
  EXPECT_THAT(rope("halves"), ElementsAre(1, 2, 3, 4, 5, -3, -4, 1, 2, 5));
}

TEST_F(OpsTest, MaskHidesTheFutureAndWhatIsOutOfTheWindow) {
  auto mask = [&](const std::string &window) {
    return valuesOf(
        run("func.func @f(%x: tensor<1x?x?xf32>, %t: tensor<?xi32>) -> "
            "tensor<1x?x?xf32> { %p = lathe.positions %t : tensor<?xi32> %r = "
            "lathe.mask %x, %p window " +
                window +
                " : tensor<1x?x?xf32>, tensor<?xi32> return %r : "
                "tensor<1x?x?xf32> }",
            {Tensor::floats({1, 3, 3}), Tensor::ints({3}, {7, 7, 7})}));
  };
  EXPECT_THAT(mask("0"), ElementsAre(0, -inf, -inf, 0, 0, -inf, 0, 0, 0));
  EXPECT_THAT(mask("2"), ElementsAre(0, -inf, -inf, 0, 0, -inf, -inf, 0, 0));
}

TEST_F(OpsTest, AttentionMixesVisibleValues) {
  // Two query heads share one KV head; keys of zeros weigh all values alike.
  auto attend = [&](const std::string &window) {
    return valuesOf(run(
        R"(func.func @f(%q: tensor<?x2x1xf32>, %k: tensor<?x1x1xf32>, %v: tensor<?x1x1xf32>, %t: tensor<?xi32>) -> tensor<?x2x1xf32> {
          %p = lathe.positions %t : tensor<?xi32>
          %r = lathe.attention %q, %k, %v, %p scale 2.0 window )" +
            window +
            R"( softcap 0.0 : tensor<?x2x1xf32>, tensor<?x1x1xf32>, tensor<?x1x1xf32>, tensor<?xi32> -> tensor<?x2x1xf32>
          return %r : tensor<?x2x1xf32>
        })",
        {Tensor::floats({3, 2, 1}, {1, 1, 0, 0, 0, 1}),
         Tensor::floats({3, 1, 1}, {0, 0, std::log(3.0f) / 2}),
         Tensor::floats({3, 1, 1}, {2, 4, 12}), Tensor::ints({3}, {0, 0, 0})}));
  };
  // Last row, second head: weights 1, 1, 3 of 5.
  EXPECT_THAT(attend("0"), near({2, 2, 3, 3, 6, 8.4f}));
  EXPECT_THAT(attend("2"), near({2, 2, 3, 3, 8, 10}));
}

constexpr const char *step = R"(
  module attributes {lathe.form = "step"} {
  lathe.kv_group @g id(0) kind(<full>) window(0) element(f16) kv_heads(1)
      head_dim(1) layers([3]) page_bytes(128) k_offsets([0]) v_offsets([64])
  func.func @f(%t: tensor<?xi32>, %x: tensor<?x1x1xf32>, %b: !lathe.batch)
      -> (tensor<?x1x1xf32>, tensor<?xi32>) {
    %p = lathe.positions %t : tensor<?xi32>
    %b1 = lathe.kv_append %b, %x, %x into @g layer 3
        : tensor<?x1x1xf32>, tensor<?x1x1xf32>
    %r = lathe.paged_attention BATCH, %x from @g layer 3 scale 0.0 window 0
        softcap 0.0 : tensor<?x1x1xf32>
    return %r, %p : tensor<?x1x1xf32>, tensor<?xi32>
  } })";

TEST_F(OpsTest, StepsOfSeveralSequencesKeepTheirOwnCache) {
  std::string text = step;
  text.replace(text.find("BATCH"), 5, "%b1");
  auto module = parse(text);
  Interpreter interpreter(*module, weights);
  ir::KvStore store;
  auto run = [&](std::vector<float> x, std::vector<StepRow> rows) {
    auto count = static_cast<int64_t>(rows.size());
    auto results = interpreter.runStep(
        "f",
        {Tensor::ints({count}, std::vector<int32_t>(rows.size())),
         Tensor::floats({count, 1, 1}, std::move(x))},
        rows, store);
    EXPECT_TRUE(mlir::succeeded(results)) << messages;
    return mlir::succeeded(results) ? std::move(*results)
                                    : std::vector<Tensor>(2);
  };
  // A scale of 0 makes the mean of what the row sees.
  auto first = run({2, 10, 4}, {{0, 0}, {1, 0}, {0, 1}});
  EXPECT_THAT(valuesOf(first[0]), ElementsAre(2, 10, 3));
  EXPECT_THAT(
      std::vector<int32_t>(first[1].i32().begin(), first[1].i32().end()),
      ElementsAre(0, 0, 1));
  auto second = run({20, 6}, {{1, 1}, {0, 2}});
  EXPECT_THAT(valuesOf(second[0]), ElementsAre(15, 4));
  // The cache holds halves: 2049 is stored as 2048.
  auto third = run({2049}, {{2, 0}});
  EXPECT_THAT(valuesOf(third[0]), ElementsAre(2048));
}

TEST_F(OpsTest, ACacheHoldsWhatItsElementsCan) {
  // One row: its value comes back as it was stored.
  auto stored = [&](const char *element, std::vector<float> head) {
    std::string text = step;
    auto put = [&](const char *old, const std::string &now) {
      for (size_t at = 0; (at = text.find(old, at)) != std::string::npos;
           at += now.size())
        text.replace(at, std::strlen(old), now);
    };
    std::string dim = std::to_string(head.size());
    put("BATCH", "%b1");
    put("element(f16)", std::string("element(") + element + ")");
    put("head_dim(1)", "head_dim(" + dim + ")");
    put("?x1x1x", "?x1x" + dim + "x");
    put("page_bytes(128)", "page_bytes(1024)");
    put("v_offsets([64])", "v_offsets([512])");
    auto module = parse(text);
    Interpreter interpreter(*module, weights);
    ir::KvStore store;
    auto count = static_cast<int64_t>(head.size());
    const ir::StepRow rows[] = {{0, 0}};
    auto results =
        interpreter.runStep("f",
                            {Tensor::ints({1}, {0}),
                             Tensor::floats({1, 1, count}, std::move(head))},
                            rows, store);
    EXPECT_TRUE(mlir::succeeded(results)) << messages;
    return mlir::succeeded(results) ? valuesOf((*results)[0])
                                    : std::vector<float>();
  };
  EXPECT_THAT(stored("bf16", {257, -1}), ElementsAre(256, -1));
  // A scale of 2 for both: 3 lies halfway between 2 and 4, 4 is the even one.
  EXPECT_THAT(stored("i8", {254, 3}), ElementsAre(254, 4));
  EXPECT_THAT(stored("i8", {0x1p-101f, 0}), ElementsAre(0, 0));
}

TEST_F(OpsTest, ABatchFromBeforeAnAppendDoesNotSeeIt) {
  std::string text = step;
  text.replace(text.find("BATCH"), 5, "%b");
  auto module = parse(text);
  ir::KvStore store;
  std::vector<StepRow> rows = {{0, 0}};
  auto results =
      Interpreter(*module, weights)
          .runStep("f", {Tensor::ints({1}, {0}), Tensor::floats({1, 1, 1})},
                   rows, store);
  EXPECT_TRUE(mlir::failed(results));
  EXPECT_THAT(messages, testing::HasSubstr("reads position 0 of sequence 0"));
}

TEST_F(OpsTest, HookSeesResultsInOrder) {
  auto module = parse(R"(func.func @f(%x: tensor<?x1xf32>) -> tensor<?x1xf32> {
      %a = lathe.scale %x by 2.0 : tensor<?x1xf32>
      %b = lathe.add %a, %x : tensor<?x1xf32>
      return %b : tensor<?x1xf32>
    })");
  Interpreter interpreter(*module, weights);
  std::vector<std::pair<std::string, float>> seen;
  interpreter.setHook([&](mlir::Operation *op,
                          std::span<const Tensor *const> results) {
    seen.emplace_back(op->getName().getStringRef().str(), results[0]->f32()[0]);
  });
  ASSERT_TRUE(
      mlir::succeeded(interpreter.run("f", {Tensor::floats({1, 1}, {5})})));
  EXPECT_THAT(seen,
              ElementsAre(std::pair<std::string, float>{"lathe.scale", 10},
                          std::pair<std::string, float>{"lathe.add", 15}));
}

TEST(NmseTest, ComparesShapesAndNonFiniteValues) {
  Tensor a = Tensor::floats({2}, {3, 4}), b = Tensor::floats({2}, {3, 4.5f});
  EXPECT_EQ(ir::nmse(a, a), 0);
  EXPECT_DOUBLE_EQ(ir::nmse(b, a), 0.25 / 25);
  EXPECT_EQ(ir::nmse(a, Tensor::floats({1, 2}, {3, 4})), inf);
  Tensor masked = Tensor::floats({2}, {3, -inf});
  EXPECT_EQ(ir::nmse(masked, masked), 0);
  EXPECT_EQ(ir::nmse(masked, a), inf);
  Tensor zero = Tensor::floats({2});
  EXPECT_EQ(ir::nmse(zero, zero), 0);
  EXPECT_EQ(ir::nmse(a, zero), inf);
}

} // namespace

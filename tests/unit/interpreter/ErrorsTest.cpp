/// \file
/// IR and inputs that the interpreter must refuse with a located message.
#include "tests/unit/interpreter/Fixture.h"

using namespace lathe;
using namespace lathe::tests;
using lathe::ir::Interpreter;
using lathe::ir::Tensor;
using testing::HasSubstr;

namespace {

class ErrorsTest : public InterpreterTest {
protected:
  /// The messages of running @f, which must fail.
  std::string failureOf(const std::string &text,
                        std::vector<Tensor> arguments) {
    auto module = parse(text);
    if (!module)
      return "";
    messages.clear();
    auto results = Interpreter(*module, weights).run("f", std::move(arguments));
    EXPECT_TRUE(mlir::failed(results));
    return messages;
  }
};

constexpr const char *embed = R"(
  lathe.weight @w : tensor<3x2x!lathe.block<f32, rows>>
      = #lathe.source<file = 0, offset = 0, bytes = 24>
  func.func @f(%t: tensor<?xi32>) -> tensor<?x2xf32> {
    %r = lathe.embed %t, @w : tensor<?xi32> -> tensor<?x2xf32>
    return %r : tensor<?x2xf32>
  })";

TEST_F(ErrorsTest, TokenOutsideTheVocabulary) {
  weights.floats["w"] = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(failureOf(embed, {Tensor::ints({1}, {3})}),
              HasSubstr("'lathe.embed' op gets token 3, outside of a "
                        "vocabulary of 3"));
  EXPECT_THAT(failureOf(embed, {Tensor::ints({1}, {-1})}),
              HasSubstr("gets token -1"));
}

TEST_F(ErrorsTest, WeightThatCannotBeRead) {
  EXPECT_THAT(failureOf(embed, {Tensor::ints({1}, {0})}),
              HasSubstr("cannot read @w: no 'w' given"));
}

TEST_F(ErrorsTest, PositionOutsideTheTable) {
  weights.floats["t"] = {1, 0};
  EXPECT_THAT(failureOf(R"(
        lathe.weight @t : tensor<1x1x2xf32> = #lathe.recipe<"rope_table", {}, []>
        func.func @f(%x: tensor<?x1x2xf32>, %p: tensor<?xi32>) -> tensor<?x1x2xf32> {
          %r = lathe.rope %x, %p, @t style <adjacent> : tensor<?x1x2xf32>, tensor<?xi32>
          return %r : tensor<?x1x2xf32>
        })",
                        {Tensor::floats({1, 1, 2}), Tensor::ints({1}, {1})}),
              HasSubstr("gets position 1, outside of a table of 1"));
}

TEST_F(ErrorsTest, DynamicSizesThatDisagree) {
  EXPECT_THAT(
      failureOf("func.func @f(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>) -> "
                "tensor<?x2xf32> { %r = lathe.add %x, %y : tensor<?x2xf32> "
                "return %r : tensor<?x2xf32> }",
                {Tensor::floats({1, 2}), Tensor::floats({3, 2})}),
      HasSubstr("needs equal shapes; its operands are 1x2 3x2"));
  EXPECT_THAT(
      failureOf(
          "func.func @f(%x: tensor<1x?x?xf32>, %p: tensor<?xi32>) -> "
          "tensor<1x?x?xf32> { %r = lathe.mask %x, %p window 0 : "
          "tensor<1x?x?xf32>, tensor<?xi32> return %r : tensor<1x?x?xf32> "
          "}",
          {Tensor::floats({1, 2, 2}), Tensor::ints({3}, {0, 1, 2})}),
      HasSubstr("needs one position per row and per key"));
  EXPECT_THAT(
      failureOf(
          "func.func @f(%x: tensor<1x?x?xf32>, %y: tensor<1x?x?xf32>) -> "
          "tensor<1x?x?xf32> { %r = lathe.matmul %x, %y : tensor<1x?x?xf32>, "
          "tensor<1x?x?xf32> -> tensor<1x?x?xf32> return %r : "
          "tensor<1x?x?xf32> }",
          {Tensor::floats({1, 2, 2}), Tensor::floats({1, 3, 2})}),
      HasSubstr("needs equal batches and inner dimensions"));
}

TEST_F(ErrorsTest, ArgumentsThatDoNotFit) {
  std::string text = "func.func @f(%x: tensor<?x2xf32>) -> tensor<?x2xf32> { "
                     "return %x : tensor<?x2xf32> }";
  EXPECT_THAT(failureOf(text, {Tensor::floats({1, 3})}),
              HasSubstr("gives 1x3 for 'tensor<?x2xf32>'"));
  EXPECT_THAT(failureOf(text, {}), HasSubstr("takes more than the 0"));
  EXPECT_THAT(failureOf(text, {Tensor::floats({1, 2}), Tensor::floats({1, 2})}),
              HasSubstr("takes 1 arguments, not 2"));
  EXPECT_THAT(failureOf("func.func @g() { return }", {}),
              HasSubstr("needs a function @f"));
  EXPECT_THAT(failureOf("func.func private @f()", {}),
              HasSubstr("needs a function @f of one block"));
}

TEST_F(ErrorsTest, OpsOfOtherDialects) {
  EXPECT_THAT(failureOf("func.func @f(%x: tensor<?x2xf32>) -> tensor<?x2xf32> "
                        "{ %r = arith.addf %x, %x : tensor<?x2xf32> return %r "
                        ": tensor<?x2xf32> }",
                        {Tensor::floats({1, 2})}),
              HasSubstr("'arith.addf' op is unknown to the interpreter"));
}

TEST_F(ErrorsTest, StepFormWithoutAStep) {
  EXPECT_THAT(failureOf("func.func @f(%b: !lathe.batch) { return }", {}),
              HasSubstr("takes a batch: run it as a step"));
}

} // namespace

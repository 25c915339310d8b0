// Texts that MLIR's parser must not be given, and those that it must.
#include "codegen/IrText.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using lathe::codegen::checkIrText;
using testing::HasSubstr;

namespace {

void expectAccepted(std::string_view text) {
  auto checked = checkIrText(text);
  EXPECT_TRUE(checked) << checked.error().message << "\n" << text;
}

void expectRefused(std::string_view text, const char *message) {
  auto checked = checkIrText(text);
  ASSERT_FALSE(checked) << text;
  EXPECT_THAT(checked.error().message, HasSubstr(message));
}

TEST(IrText, OrdinaryTextPasses) {
  expectAccepted("");
  expectAccepted(R"(#loc = loc("a % in a string \" %x {{{")
// %comment
module attributes {lathe.form = "sequence", n = #x<a = 1, b = <f32>>} {
  lathe.weight @w : tensor<4xf32> = #lathe.recipe<"r", {base = 1.0 : f64}, []>
  func.func @f(%arg0: tensor<?xi32> loc(unknown), %arg1: i32 {a.b = 1})
      -> (tensor<?xf32> {c.d}) attributes {e = 1} {
    %0 = lathe.embed %arg0, @w : tensor<?xi32> loc(#loc)
    %1:2, %c = "x.y"(%0, %arg1) ({
    ^bb0(%inner: i32):
      "x.use"(%inner, %0) : (i32, i32) -> ()
    }) : (i32, i32) -> (i32, i32, i32)
    %2, %3 = lathe.merged_linear %1#1, %c : i32 -> i32, i32
    return %3, %2 : i32, i32
  }
  func.func @g(%arg0: i32) {
    return
  }
}
)");
}

// MLIR 19 frees %79 before its user when the text goes wrong behind it.
TEST(IrText, UseBeforeDefinition) {
  expectRefused(R"(module {
  %80 = "test.op"(%79) : (i32) -> i32
  func.func @f(%a: i32) {
    %79 = arith.addi %a, %a : i32
    %81 = arith.addi %79, %a : i64
    return
  }
})",
                "line 2: '%79' is used, but not defined before");
  expectRefused("%1 = x.y %1, %2 : i32\n", "'%2'");
  expectRefused("x.y %1, %2\n%1, %2 = x.z\n", "'%1'");
}

TEST(IrText, UseOutsideOfTheRegion) {
  const char *inner = "func.func @f(%a: i32) {\n %1 = x.y %a\n}\n";
  expectRefused(std::string(inner) + "x.z %1\n", "line 4: '%1'");
  expectRefused(std::string(inner) + "x.z(%a : i32)\n", "line 4: '%a'");
  expectRefused("func.func @f(%a: i32)\nx.z %a\n", "line 2: '%a'");
}

TEST(IrText, DeepNesting) {
  for (char open : {'(', '[', '{', '<'}) {
    expectAccepted(std::string(200, open));
    expectRefused(std::string(100000, open), "line 1: brackets nested deeper");
  }
}

TEST(IrText, Bytecode) {
  expectRefused("ML\xefR\x01", "binary");
  expectRefused(std::string_view("module {\0}", 10), "binary");
}

TEST(IrText, CutAnywhere) {
  std::string_view text = "func.func @f(%a: i32, %b: i32) {\n"
                          "  %1:2, %2 = x.y %a, %b \"s\\\"\" // c\n}\n";
  for (size_t n = 0; n <= text.size(); ++n)
    (void)checkIrText(text.substr(0, n));
}

} // namespace

/// \file
/// Weights as the interpreter reads them from a model's files: rows in ggml's
/// order whatever the recipe and the layout.
#include "codegen/StoredWeights.h"
#include "tests/unit/interpreter/Fixture.h"

#include <cstring>
#include <numeric>

using namespace lathe;
using namespace lathe::tests;

namespace {

class StoredWeightsTest : public InterpreterTest {
protected:
  StoredWeightsTest() : bytes(4096) {
    std::iota(bytes.begin(), bytes.end(), uint8_t{0});
    module = parse(R"(
      lathe.weight @plain : tensor<4x32x!lathe.block<q8_0, rows>>
          = #lathe.source<file = 0, offset = 10, bytes = 136>
      lathe.weight @packed : tensor<4x32x!lathe.block<q8_0, r16>>
          = #lathe.recipe<"pack", {}, [#lathe.source<file = 0, offset = 10, bytes = 136>]>
      lathe.weight @both : tensor<8x32x!lathe.block<q8_0, rows>>
          = #lathe.recipe<"interleave", {rows = 2},
              [#lathe.source<file = 0, offset = 10, bytes = 136>,
               #lathe.source<file = 0, offset = 1000, bytes = 136>]>
      lathe.weight @outside : tensor<4x32x!lathe.block<q8_0, rows>>
          = #lathe.source<file = 0, offset = 4000, bytes = 136>
      lathe.weight @vector : tensor<3xf32>
          = #lathe.source<file = 0, offset = 2000, bytes = 12>
      lathe.weight @halves : tensor<2xf32>
          = #lathe.recipe<"convert", {format = "f16"}, [#lathe.source<file = 0, offset = 3000, bytes = 4>]>
      lathe.weight @table : tensor<2x1x2xf32>
          = #lathe.recipe<"rope_table", {base = 1.0e4}, []>)");
    float values[3] = {1.5f, -2, 3};
    std::memcpy(&bytes[2000], values, sizeof(values));
    // 1 and -2 in binary16.
    uint16_t halves[2] = {0x3c00, 0xc000};
    std::memcpy(&bytes[3000], halves, sizeof(halves));
  }

  ir::WeightOp weight(const std::string &name) {
    return module->lookupSymbol<ir::WeightOp>(name);
  }
  /// Offsets of a matrix' rows in the file.
  std::vector<long> offsets(const std::string &name) {
    codegen::StoredWeights stored{codegen::WeightStore({bytes})};
    auto rows = stored.rows(weight(name));
    std::vector<long> result;
    if (!rows) {
      ADD_FAILURE() << rows.error().message;
      return result;
    }
    for (const uint8_t *row : *rows)
      result.push_back(row - bytes.data());
    return result;
  }

  std::vector<uint8_t> bytes;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(StoredWeightsTest, RowsLieWhereTheRecipeSays) {
  using testing::ElementsAre;
  EXPECT_THAT(offsets("plain"), ElementsAre(10, 44, 78, 112));
  EXPECT_THAT(offsets("packed"), ElementsAre(10, 44, 78, 112));
  EXPECT_THAT(offsets("both"),
              ElementsAre(10, 44, 1000, 1034, 78, 112, 1068, 1102));
}

TEST_F(StoredWeightsTest, ValuesOfVectorsAndTables) {
  codegen::StoredWeights stored{codegen::WeightStore({bytes})};
  // Twice: the second time from what was kept.
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(*stored.values(weight("vector")),
                testing::ElementsAre(1.5f, -2, 3));
    EXPECT_THAT(*stored.values(weight("halves")), testing::ElementsAre(1, -2));
    EXPECT_THAT(*stored.values(weight("table")),
                testing::ElementsAre(1, 0, testing::FloatEq(0.54030231f),
                                     testing::FloatEq(0.84147098f)));
  }
}

TEST_F(StoredWeightsTest, WhatCannotBeReadIsAnError) {
  codegen::StoredWeights stored{codegen::WeightStore({bytes})};
  auto outside = stored.rows(weight("outside"));
  ASSERT_FALSE(outside);
  EXPECT_THAT(outside.error().message,
              testing::HasSubstr("reads bytes 4000 + 136"));
  auto vector = stored.rows(weight("vector"));
  ASSERT_FALSE(vector);
  EXPECT_THAT(vector.error().message,
              testing::HasSubstr("is not a matrix of blocks"));
}

} // namespace

// The typed getters.
#include "tests/unit/gguf/GgufTest.h"

#include <limits>

using namespace lathe::frontend;
using namespace lathe::tests;
using lathe::runtime::ErrorKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

class ValuesTest : public GgufTest {
protected:
  GgufFile file = open(smallModel().bytes()).value();

  /// The result failed with a message that names file and key.
  template <typename T>
  void expectError(const lathe::runtime::Result<T> &result, ErrorKind kind,
                   const char *key, const char *text) {
    ASSERT_FALSE(result) << key;
    EXPECT_EQ(result.error().kind, kind) << result.error().message;
    EXPECT_THAT(result.error().message, HasSubstr(dir.path("m.gguf")));
    EXPECT_THAT(result.error().message, HasSubstr(key));
    EXPECT_THAT(result.error().message, HasSubstr(text));
  }
};

TEST_F(ValuesTest, ScalarsOfAllTypes) {
  EXPECT_EQ(file.getU32("v.u8").value(), 200u);
  EXPECT_EQ(file.getI64("v.i8").value(), -100);
  EXPECT_EQ(file.getU64("v.u16").value(), 60000u);
  EXPECT_EQ(file.getI64("v.i16").value(), -30000);
  EXPECT_EQ(file.getU32("v.u32").value(), 4000000000u);
  EXPECT_EQ(file.getI64("v.i32").value(), -2000000000);
  EXPECT_EQ(file.getU64("v.u64").value(), 1ull << 63);
  EXPECT_EQ(file.getI64("v.i64").value(), INT64_MIN);
  EXPECT_EQ(file.getF32("v.f32").value(), 1e-5f);
  EXPECT_EQ(file.getF32("v.f64").value(), 0.25f);
  EXPECT_EQ(file.getBool("v.true").value(), true);
  EXPECT_EQ(file.getBool("v.false").value(), false);
  EXPECT_EQ(file.getString("general.architecture").value(), "llama");
}

TEST_F(ValuesTest, Arrays) {
  EXPECT_THAT(file.getI32Array("v.ints").value(), ElementsAre(-1, 2, 3));
  EXPECT_THAT(file.getI32Array("v.bools").value(), ElementsAre(1, 0, 1));
  EXPECT_THAT(file.getF32Array("v.floats").value(), ElementsAre(1.0f, -2.5f));
  EXPECT_THAT(file.getF32Array("v.empty").value(), IsEmpty());
  EXPECT_THAT(file.getStringArray("tokenizer.ggml.tokens").value(),
              ElementsAre("a", "", "\xff\xfe", "日"));
}

TEST_F(ValuesTest, PerLayerValuesAreOneNumberOrOneEach) {
  EXPECT_THAT(file.getU32PerLayer("v.heads", 2).value(), ElementsAre(4, 8));
  EXPECT_THAT(file.getU32PerLayer("v.u8", 3).value(),
              ElementsAre(200, 200, 200));
  EXPECT_THAT(file.getU32PerLayer("none", 2, 7).value(), ElementsAre(7, 7));
  expectError(file.getU32PerLayer("v.heads", 3), ErrorKind::InvalidInput,
              "'v.heads'", "2 elements for 3 layers");
  expectError(file.getU32PerLayer("none", 3), ErrorKind::NotFound, "'none'",
              "missing");
  expectError(file.getU32PerLayer("v.ints", 3), ErrorKind::InvalidInput,
              "'v.ints'", "element 0");
  for (auto result : {file.getU32PerLayer("v.u8", UINT32_MAX),
                      file.getU32PerLayer("none", UINT32_MAX, 1)})
    EXPECT_FALSE(result);
}

TEST_F(ValuesTest, FallbacksStandInForAbsentKeysOnly) {
  EXPECT_EQ(file.getU32("none", 5).value(), 5u);
  EXPECT_EQ(file.getU64("none", 5).value(), 5u);
  EXPECT_EQ(file.getI64("none", -5).value(), -5);
  EXPECT_EQ(file.getF32("none", 0.5f).value(), 0.5f);
  EXPECT_EQ(file.getBool("none", true).value(), true);
  EXPECT_EQ(file.getString("none", "x").value(), "x");
  EXPECT_EQ(file.getU32("v.u8", 5).value(), 200u);
  EXPECT_FALSE(file.getU32("v.f32", 5));
  EXPECT_FALSE(file.getString("v.u8", "x"));
}

TEST_F(ValuesTest, WrongTypesAndRangesAreNamed) {
  expectError(file.getU32("none"), ErrorKind::NotFound, "'none'", "missing");
  expectError(file.getU32("v.i8"), ErrorKind::InvalidInput, "'v.i8'",
              "is i8 -100, not an integer of 0 to");
  expectError(file.getU32("v.u64"), ErrorKind::InvalidInput, "'v.u64'",
              "9223372036854775808");
  expectError(file.getI64("v.u64"), ErrorKind::InvalidInput, "'v.u64'", "u64");
  expectError(file.getU64("v.i64"), ErrorKind::InvalidInput, "'v.i64'", "i64");
  expectError(file.getU32("v.true"), ErrorKind::InvalidInput, "'v.true'",
              "bool");
  expectError(file.getF32("v.u32"), ErrorKind::InvalidInput, "'v.u32'", "u32");
  expectError(file.getBool("v.u8"), ErrorKind::InvalidInput, "'v.u8'", "u8");
  expectError(file.getString("v.ints"), ErrorKind::InvalidInput, "'v.ints'",
              "array of i32");
  expectError(file.getStringArray("v.ints"), ErrorKind::InvalidInput,
              "'v.ints'", "array of i32");
  expectError(file.getI32Array("v.floats"), ErrorKind::InvalidInput,
              "'v.floats'", "element 0");
  expectError(file.getI32Array("v.u8"), ErrorKind::InvalidInput, "'v.u8'",
              "u8");
  expectError(file.getF32Array("tokenizer.ggml.tokens"),
              ErrorKind::InvalidInput, "'tokenizer.ggml.tokens'",
              "array of string");
}

TEST_F(ValuesTest, FloatsThatAreNotFiniteAsF32AreRefused) {
  float inf = std::numeric_limits<float>::infinity();
  GgufWriter writer;
  writer.f32("inf", inf)
      .f64("huge", 1e300)
      .f64("nan", std::numeric_limits<double>::quiet_NaN())
      .array<float>("list", 6, {0.0f, -inf});
  auto other = open(writer.bytes());
  ASSERT_TRUE(other);
  for (const char *key : {"inf", "huge", "nan"})
    expectError(other->getF32(key), ErrorKind::InvalidInput, key, "finite");
  expectError(other->getF32Array("list"), ErrorKind::InvalidInput, "list",
              "element 1");
}

} // namespace

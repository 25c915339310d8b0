/// \file
/// What the GGUF tests share.
#ifndef LATHE_TESTS_UNIT_GGUF_GGUFTEST_H
#define LATHE_TESTS_UNIT_GGUF_GGUFTEST_H

#include "frontend/gguf/GgufFile.h"
#include "tests/unit/support/GgufWriter.h"
#include "tests/unit/support/TempDir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lathe::tests {

/// ggml type numbers.
enum : uint32_t { ggmlF32 = 0, ggmlF16 = 1, ggmlQ4_0 = 2, ggmlQ6_K = 14 };

class GgufTest : public testing::Test {
protected:
  TempDir dir;

  runtime::Result<frontend::GgufFile> open(const GgufWriter::Bytes &bytes,
                                           std::string_view name = "m.gguf") {
    return frontend::GgufFile::open(dir.write(name, bytes));
  }

  /// The file is refused with one line that names it and says `expected`.
  void expectRefused(const GgufWriter::Bytes &bytes, const char *expected) {
    auto file = open(bytes);
    ASSERT_FALSE(file) << "accepted; expected: " << expected;
    EXPECT_THAT(file.error().message, testing::HasSubstr(expected));
    EXPECT_THAT(file.error().message, testing::StartsWith(dir.path("m.gguf")));
    EXPECT_EQ(file.error().message.find('\n'), std::string::npos);
    EXPECT_LT(file.error().message.size(), 600u);
  }

  /// `count` zero bytes.
  static GgufWriter::Bytes zeros(size_t count) {
    return GgufWriter::Bytes(count);
  }

  /// A small model with values of all types and three tensors.
  static GgufWriter smallModel() {
    GgufWriter writer;
    writer.string("general.architecture", "llama")
        .u8("v.u8", 200)
        .i8("v.i8", -100)
        .u16("v.u16", 60000)
        .i16("v.i16", -30000)
        .u32("v.u32", 4000000000u)
        .i32("v.i32", -2000000000)
        .u64("v.u64", 1ull << 63)
        .i64("v.i64", INT64_MIN)
        .f32("v.f32", 1e-5f)
        .f64("v.f64", 0.25)
        .boolean("v.true", true)
        .boolean("v.false", false)
        .array<uint32_t>("v.heads", 4, {4, 8})
        .array<int32_t>("v.ints", 5, {-1, 2, 3})
        .array<uint8_t>("v.bools", 7, {1, 0, 1})
        .array<float>("v.floats", 6, {1.0f, -2.5f})
        .array<float>("v.empty", 6, {})
        .strings("tokenizer.ggml.tokens", {"a", "", "\xff\xfe", "日"})
        .array<float>("tokenizer.ggml.scores", 6, {0, 1, 2, 3});
    GgufWriter::Bytes f32, q4(2 * 18), q6(210);
    for (int i = 0; i < 6; ++i)
      GgufWriter::put(f32, float(i));
    for (size_t i = 0; i < q4.size(); ++i)
      q4[i] = static_cast<uint8_t>(i % 18 == 1 ? 0x3c : i);
    writer.tensor("token_embd.weight", {3, 2}, ggmlF32, f32)
        .tensor("blk.0.attn_q.weight", {32, 2}, ggmlQ4_0, q4)
        .tensor("blk.0.é", {256}, ggmlQ6_K, q6);
    return writer;
  }
};

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_GGUF_GGUFTEST_H

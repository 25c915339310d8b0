#include "runtime/text/Utf8.h"

#include <gtest/gtest.h>

namespace lathe::runtime {
namespace {

std::string repaired(std::string text) {
  std::string out;
  moveValidUtf8(text, out, /*last=*/true);
  return out;
}

TEST(Utf8, EveryCodePointReadsBackAsWritten) {
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF)
      continue;
    std::string text;
    appendUtf8(c, text);
    Utf8Unit unit = readUtf8(text);
    ASSERT_EQ(unit.kind, Utf8Kind::Valid) << c;
    ASSERT_EQ(unit.size, text.size()) << c;
    ASSERT_EQ(unit.codePoint, c);
  }
}

TEST(Utf8, IllFormedTextIsNotValid) {
  for (const char *text :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xC3\x28", "\xE0\x80\x80",
        "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFE", "\xFF", "a\xE2\x82"})
    EXPECT_FALSE(isValidUtf8(text)) << testing::PrintToString(text);
  EXPECT_TRUE(isValidUtf8(""));
  EXPECT_TRUE(isValidUtf8(std::string_view("a\0\xF4\x8F\xBF\xBF", 6)));
}

// The examples of the Unicode standard, section 3.9, tables 3-8 to 3-11.
TEST(Utf8, ReplacesMaximalSubparts) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(repaired("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(repaired("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(repaired("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(repaired("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"),
            r + r + r + r + "A");
}

TEST(Utf8, AnUnfinishedCharacterWaits) {
  std::string pending = "a\xF0\x9F\xA6", out;
  moveValidUtf8(pending, out, /*last=*/false);
  EXPECT_EQ(out, "a");
  EXPECT_EQ(pending, "\xF0\x9F\xA6");
  pending += "\x99";
  moveValidUtf8(pending, out, /*last=*/false);
  EXPECT_EQ(out, "a🦙");
  EXPECT_EQ(pending, "");
}

} // namespace
} // namespace lathe::runtime

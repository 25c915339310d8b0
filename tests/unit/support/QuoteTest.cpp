#include "runtime/support/Quote.h"

#include <gtest/gtest.h>

using namespace lathe::runtime;

namespace {

TEST(Quote, Utf8FollowsRfc3629) {
  for (const char *good : {"", "abc", "\xc2\x80", "é日本", "😀", "\xed\x9f\xbf",
                           "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(isUtf8(good)) << good;
  for (const char *bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf",
        "\xed\xa0\x80", "\xe2\x82", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "ok\xfe"})
    EXPECT_FALSE(isUtf8(bad)) << bad;
}

TEST(Quote, ControlAndBrokenBytesAreEscaped) {
  EXPECT_EQ(quoted("blk.0.é"), "'blk.0.é'");
  EXPECT_EQ(quoted("a'b\\c\n\x1b[2J\xff\xc2\x9b"),
            "'a\\x27b\\x5cc\\x0a\\x1b[2J\\xff\\xc2\\x9b'");
  EXPECT_EQ(quoted(std::string_view("a\0b", 3)), "'a\\x00b'");
  EXPECT_EQ(displayPath("/a/it's\n"), "/a/it's\\x0a");
}

TEST(Quote, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(quoted("abcdef", 3), "'abc…' (6 bytes)");
  EXPECT_EQ(quoted("abcédef", 4), "'abc…' (8 bytes)");
  EXPECT_EQ(quoted("😀😀", 7), "'😀…' (8 bytes)");
}

} // namespace

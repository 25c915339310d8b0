#include "runtime/text/PreTokenizer.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lathe::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> pieces(std::string_view family,
                                std::string_view text) {
  auto preTokenizer = PreTokenizer::create(family);
  EXPECT_TRUE(preTokenizer) << preTokenizer.error().message;
  std::vector<uint32_t> ends;
  EXPECT_TRUE(preTokenizer->split(text, ends));
  std::vector<std::string> out;
  uint32_t begin = 0;
  for (uint32_t end : ends) {
    EXPECT_GT(end, begin);
    out.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return out;
}

constexpr std::string_view kMixed = "I'LL pay 12345!!\n\n  ok";

TEST(PreTokenizer, Gpt2) {
  EXPECT_THAT(
      pieces("gpt-2", kMixed),
      ElementsAre("I", "'", "LL", " pay", " 12345", "!!", "\n\n ", " ok"));
}

TEST(PreTokenizer, Llama3) {
  EXPECT_THAT(
      pieces("llama-bpe", kMixed),
      ElementsAre("I", "'LL", " pay", " ", "123", "45", "!!\n\n", " ", " ok"));
}

TEST(PreTokenizer, Qwen2) {
  EXPECT_THAT(pieces("qwen2", kMixed),
              ElementsAre("I", "'LL", " pay", " ", "1", "2", "3", "4", "5",
                          "!!\n\n", " ", " ok"));
}

TEST(PreTokenizer, Smollm) {
  EXPECT_THAT(pieces("smollm", kMixed),
              ElementsAre("I", "'", "LL", " pay", " ", "1", "2", "3", "4", "5",
                          "!!", "\n\n ", " ok"));
}

TEST(PreTokenizer, Qwen35KeepsMarksWithLetters) {
  EXPECT_THAT(pieces("qwen35", "ne\u0301e x"), ElementsAre("ne\u0301e", " x"));
  EXPECT_THAT(pieces("qwen2", "ne\u0301e x"),
              ElementsAre("ne", "\u0301e", " x"));
}

TEST(PreTokenizer, Default) {
  EXPECT_THAT(pieces("default", "ab, 12345"),
              ElementsAre("ab", ",", " ", "123", "45"));
}

TEST(PreTokenizer, SpacesAreThoseOfUnicode) {
  // U+0085 is a space; U+180E has not been one since Unicode 6.3, although
  // PCRE2's \s still takes it.
  EXPECT_THAT(pieces("gpt-2", "a\u0085\u3000b"),
              ElementsAre("a", "\u0085", "\u3000", "b"));
  EXPECT_THAT(pieces("gpt-2", "a \u180E!"), ElementsAre("a", " \u180E!"));
}

TEST(PreTokenizer, ContractionsFoldCaseAsUnicodeDoes) {
  // U+017F, long s, is an s when case is ignored: Hugging Face's regular
  // expressions say so.
  EXPECT_THAT(pieces("llama-bpe", "x'\u017F!"),
              ElementsAre("x", "'\u017F", "!"));
}

TEST(PreTokenizer, EmptyTextHasNoPieces) {
  EXPECT_TRUE(pieces("llama-bpe", "").empty());
}

TEST(PreTokenizer, UnknownNameIsAnErrorThatListsTheKnownOnes) {
  auto unknown = PreTokenizer::create("llama-7");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::Unsupported);
  EXPECT_THAT(unknown.error().message, HasSubstr("'llama-7'"));
  for (const std::string &name : PreTokenizer::knownNames())
    EXPECT_THAT(unknown.error().message, HasSubstr(name));
  EXPECT_FALSE(PreTokenizer::create(""));
}

TEST(PreTokenizer, EveryKnownNameWorks) {
  auto names = PreTokenizer::knownNames();
  EXPECT_TRUE(std::ranges::is_sorted(names));
  for (const std::string &name : names)
    EXPECT_FALSE(pieces(name, kMixed).empty()) << name;
}

} // namespace
} // namespace lathe::runtime

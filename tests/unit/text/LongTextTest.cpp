// Texts that broke tokenizers whose patterns recurse or whose merging is
// quadratic: each must take less than a second on a stack of 1 MiB.

#include "runtime/text/PreTokenizer.h"
#include "runtime/text/Utf8.h"
#include "tests/unit/text/Vocabularies.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <pthread.h>

namespace lathe::runtime::test {
namespace {

void onSmallStack(std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 1 << 20), 0);
  pthread_t thread;
  auto call = [](void *argument) -> void * {
    (*static_cast<std::function<void()> *>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, call, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::string repeated(std::string_view text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i)
    out += text;
  return out;
}

/// Merges that double a text up to 64 of it, so that long runs do merge.
std::vector<std::pair<std::string, std::string>>
doublings(const std::vector<std::string> &texts) {
  std::vector<std::pair<std::string, std::string>> merges;
  for (const std::string &text : texts)
    for (size_t n = 1; n < 64; n *= 2)
      merges.emplace_back(repeated(text, n), repeated(text, n));
  return merges;
}

struct Case {
  const char *name;
  std::string text;
  size_t ids; ///< How many ids it has where runs merge in 64s.
};

std::vector<Case> cases() {
  return {
      {"letters", std::string(131072, 'Z'), 131072 / 64},
      {"lines", std::string(50000, '\n'), 50000 / 64 + 1},
      {"spaces", std::string(50000, ' '), 50000 / 64 + 1},
      {"spaces and a letter", std::string(50000, ' ') + "Z", 0},
      {"spaces and lines", repeated(" \n", 50000), 0},
      {"apostrophes", std::string(100000, '\''), 0},
      {"digits", std::string(100000, '7'), 0},
      {"bytes", std::string(100000, '\xFF'), 0},
      {"marks", "e" + repeated("\u0301", 50000), 0},
      {"nearly markers", repeated("<|im_start|", 20000), 0},
      {"markers", repeated("<|im_start|>", 20000), 0},
      {"empty characters", std::string(100000, '\0'), 0},
  };
}

void check(const std::string &family, const Tokenizer &tokenizer) {
  for (const Case &c : cases()) {
    auto start = std::chrono::steady_clock::now();
    std::vector<int32_t> ids;
    onSmallStack([&] {
      ids = encode(tokenizer, c.text);
      std::string text = tokenizer.decodeBytes(ids);
      if (text != c.text && family != "unigram") // It normalizes spaces.
        ADD_FAILURE() << family << ", " << c.name;
    });
    std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    EXPECT_LT(seconds.count(), 1.0) << family << ", " << c.name;
    if (c.ids && family != "pieces" && family != "unigram") {
      EXPECT_NEAR(double(ids.size()), double(c.ids), 4.0)
          << family << ", " << c.name;
      EXPECT_EQ(tokenizer.tokenBytes(ids[0]), c.text.substr(0, 64))
          << family << ", " << c.name;
      EXPECT_LE(
          std::ranges::count_if(ids, [&](int32_t id) { return id != ids[0]; }),
          4)
          << family << ", " << c.name;
    }
  }
}

TEST(LongText, EveryFamilyIsFastOnASmallStack) {
  for (const char *family :
       {"gpt-2", "llama-bpe", "qwen2", "qwen35", "smollm", "default"})
    check(family, makeTokenizer(
                      byteLevelSpec(family, doublings({"Z", "\n", " ", "'"}))));
}

/// All that a file may name, new ones too.
TEST(LongText, EveryPreTokenizerIsFastOnASmallStack) {
  for (const std::string &name : PreTokenizer::knownNames()) {
    PreTokenizer preTokenizer = PreTokenizer::create(name).value();
    for (const Case &c : cases()) {
      if (!isValidUtf8(c.text))
        continue;
      auto start = std::chrono::steady_clock::now();
      std::vector<uint32_t> ends;
      onSmallStack(
          [&] { EXPECT_TRUE(preTokenizer.split(c.text, ends)) << c.name; });
      std::chrono::duration<double> seconds =
          std::chrono::steady_clock::now() - start;
      EXPECT_LT(seconds.count(), 1.0) << name << ", " << c.name;
      EXPECT_EQ(ends.back(), c.text.size()) << name << ", " << c.name;
    }
  }
}

TEST(LongText, PiecesAreFastOnASmallStack) {
  std::vector<std::string> pieces{"▁", "Z", "\n", "'"};
  for (auto &[left, right] : doublings({"▁", "Z", "\n", "'"}))
    pieces.insert(pieces.begin(), left + right);
  check("pieces", makeTokenizer(piecesSpec(pieces)));
  // The same pieces, by the best sum of scores.
  TokenizerSpec spec = piecesSpec(pieces);
  spec.model = TokenizerModel::Unigram;
  check("unigram", makeTokenizer(spec));
}

} // namespace
} // namespace lathe::runtime::test

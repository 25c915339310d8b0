#include "runtime/text/StreamDecoder.h"

#include "runtime/text/Utf8.h"
#include "tests/unit/text/Vocabularies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

namespace lathe::runtime::test {
namespace {

TEST(StreamDecoder, NeverEmitsHalfACharacter) {
  Tokenizer tokenizer = makeTokenizer(byteLevelSpec("gpt-2"));
  StreamDecoder decoder(tokenizer);
  std::string out;
  for (uint8_t byte : {0xF0, 0x9F, 0xA6}) {
    decoder.push(byte, out);
    EXPECT_EQ(out, "");
  }
  decoder.push(0x99, out);
  EXPECT_EQ(out, "🦙");
}

TEST(StreamDecoder, AnUnfinishedEndBecomesAReplacementCharacter) {
  Tokenizer tokenizer = makeTokenizer(byteLevelSpec("gpt-2"));
  StreamDecoder decoder(tokenizer);
  std::string out;
  for (int32_t id : {0x61, 0xE2, 0x82})
    decoder.push(id, out);
  EXPECT_EQ(out, "a");
  decoder.flush(out);
  EXPECT_EQ(out, "a\uFFFD");
  decoder.flush(out);
  EXPECT_EQ(out, "a\uFFFD") << "only once";
}

TEST(StreamDecoder, ByteTokensOfSentencePiece) {
  Tokenizer tokenizer = makeTokenizer(piecesSpec({"▁hi", "▁h", "▁"}));
  auto ids = encode(tokenizer, "hi🦙");
  EXPECT_EQ(names(tokenizer, ids),
            (std::vector<std::string>{"▁hi", "<0xF0>", "<0x9F>", "<0xA6>",
                                      "<0x99>"}));
  EXPECT_EQ(tokenizer.decode(ids), "hi🦙");
  EXPECT_EQ(tokenizer.decode({ids.data(), 3}), "hi\uFFFD");
  EXPECT_EQ(tokenizer.decodeBytes({ids.data(), 3}), "hi\xF0\x9F");
}

TEST(StreamDecoder, TheSpaceInFrontOfATextIsTakenAwayOfAContinuationKept) {
  Tokenizer tokenizer = makeTokenizer(piecesSpec({"▁hi", "▁h", "▁"}));
  auto ids = encode(tokenizer, "hi", {.addSpecial = true});
  EXPECT_EQ(tokenizer.decode(ids), "hi");
  std::string out;
  StreamDecoder decoder(tokenizer);
  decoder.push(ids.back(), out);
  EXPECT_EQ(out, " hi");
}

TEST(StreamDecoder, ControlTokensAreHiddenOrShown) {
  TokenizerSpec spec = byteLevelSpec("gpt-2");
  Tokenizer tokenizer = makeTokenizer(spec);
  std::vector<int32_t> ids{spec.bosId, 'a', 259 /*<tool>*/, spec.eosId};
  EXPECT_EQ(tokenizer.decode(ids), "a<tool>");
  EXPECT_EQ(tokenizer.decode(ids, {.showSpecial = true}),
            "<|im_start|>a<tool><|im_end|>");
}

TEST(StreamDecoder, IdsOutsideTheVocabularyAreEmptyText) {
  Tokenizer tokenizer = makeTokenizer(byteLevelSpec("gpt-2"));
  EXPECT_EQ(tokenizer.decode(
                std::vector<int32_t>{'a', 505, 1 << 30, -1, INT32_MIN, 'b'}),
            "ab");
  EXPECT_EQ(tokenizer.tokenBytes(505), "");
  EXPECT_FALSE(tokenizer.isSpecial(505));
  EXPECT_FALSE(tokenizer.isEnd(505));
}

TEST(StreamDecoder, RandomIdsStreamToTheDecodedText) {
  Tokenizer tokenizer =
      makeTokenizer(piecesSpec({"▁", "▁a", "b", "é", "▁▁", "日", "本"}));
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int32_t> ids(random() % 12);
    for (int32_t &id : ids)
      id = static_cast<int32_t>(random() % tokenizer.vocabularySize());
    DecodeOptions options{.showSpecial = random() % 2 == 0,
                          .textStart = random() % 2 == 0};
    StreamDecoder decoder(tokenizer, options);
    std::string whole;
    for (int32_t id : ids) {
      decoder.push(id, whole);
      ASSERT_TRUE(isValidUtf8(whole));
    }
    decoder.flush(whole);
    ASSERT_EQ(whole, tokenizer.decode(ids, options));
    std::string bytes = tokenizer.decodeBytes(ids, options), repaired;
    moveValidUtf8(bytes, repaired, true);
    ASSERT_EQ(whole, repaired);
  }
}

} // namespace
} // namespace lathe::runtime::test

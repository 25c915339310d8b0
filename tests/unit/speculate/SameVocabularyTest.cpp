// Draft models whose ids mean something else are refused.

#include "runtime/speculate/SameVocabulary.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::runtime;

namespace {

TokenizerSpec vocabulary(size_t size) {
  TokenizerSpec spec;
  for (size_t i = 0; i < size; ++i)
    spec.tokens.push_back("piece" + std::to_string(i));
  spec.bosId = 1;
  spec.eosId = 2;
  return spec;
}

TEST(SameVocabulary, EqualOnesPass) {
  auto checked = checkSameVocabulary(vocabulary(64), vocabulary(64));
  ASSERT_TRUE(checked.has_value());
  EXPECT_EQ(*checked, "");
}

TEST(SameVocabulary, SwappedTokensAreRefusedByTheFirst) {
  TokenizerSpec draft = vocabulary(64);
  std::swap(draft.tokens[10], draft.tokens[11]);
  auto checked = checkSameVocabulary(vocabulary(64), draft);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().kind, ErrorKind::InvalidInput);
  EXPECT_EQ(checked.error().message,
            "the draft model's vocabulary is another one: token 10 is "
            "'piece11', the model's is 'piece10'; choose a draft model of the "
            "same family");
}

TEST(SameVocabulary, AnotherFamilyIsRefused) {
  TokenizerSpec draft = vocabulary(64);
  draft.model = TokenizerModel::SentencePieceBpe;
  auto checked = checkSameVocabulary(vocabulary(64), draft);
  ASSERT_FALSE(checked.has_value());
  EXPECT_EQ(checked.error().message,
            "the draft model's vocabulary is another one: SentencePiece BPE, "
            "the model's is byte-level BPE; choose a draft model of the same "
            "family");
}

TEST(SameVocabulary, PaddingAtTheEndPasses) {
  for (size_t size : {32, 128}) {
    auto checked = checkSameVocabulary(vocabulary(64), vocabulary(size));
    ASSERT_TRUE(checked.has_value());
    EXPECT_EQ(*checked, "");
  }
}

TEST(SameVocabulary, OtherEndsAreWarnedOf) {
  TokenizerSpec draft = vocabulary(64);
  draft.eosId = 3;
  draft.addBos = true;
  auto checked = checkSameVocabulary(vocabulary(64), draft);
  ASSERT_TRUE(checked.has_value());
  EXPECT_EQ(*checked, "the draft model may have been made for another use: end "
                      "token 3 (the model's: 2), adds a begin token: yes (the "
                      "model's: no)");
}

} // namespace

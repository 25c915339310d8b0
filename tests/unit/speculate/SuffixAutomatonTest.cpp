// The automaton against a search that looks at every place of the text.

#include "runtime/speculate/SuffixAutomaton.h"
#include "runtime/speculate/NgramProposer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace lathe;
using namespace lathe::runtime;

namespace {

/// The longest suffix of a text that ends earlier, too, and its last such end.
SuffixAutomaton::Match searched(std::span<const i32> text) {
  SuffixAutomaton::Match best;
  for (u32 end = 1; end < text.size(); ++end) {
    u32 length = 0;
    while (length < end &&
           text[end - 1 - length] == text[text.size() - 1 - length])
      ++length;
    if (length != 0 && length >= best.length)
      best = {.length = length, .end = end};
  }
  return best;
}

TEST(SuffixAutomaton, FindsWhatASearchFinds) {
  std::mt19937 random(7);
  for (u32 round = 0; round < 300; ++round) {
    SuffixAutomaton automaton;
    std::vector<i32> text;
    // Few words repeat much, many little; ids may be anything.
    u32 words = 2 + round % 40;
    u32 size = 1 + random() % 120;
    for (u32 i = 0; i < size; ++i) {
      // Now and then a stretch is said again.
      if (!text.empty() && random() % 10 == 0) {
        u32 from = random() % text.size();
        u32 count = random() % 12;
        for (u32 j = from; j < from + count && j < text.size(); ++j)
          text.push_back(text[j]);
      }
      text.push_back(i32(random() % words) * 40503);
      while (automaton.size() < text.size()) {
        automaton.append(text[automaton.size()]);
        auto wanted = searched(std::span(text).first(automaton.size()));
        auto found = automaton.match();
        ASSERT_EQ(found.length, wanted.length) << "at " << automaton.size();
        if (wanted.length != 0)
          ASSERT_EQ(found.end, wanted.end) << "at " << automaton.size();
      }
    }
  }
}

TEST(SuffixAutomaton, ARunOfOneToken) {
  SuffixAutomaton automaton;
  for (u32 i = 1; i <= 1000; ++i) {
    automaton.append(5);
    ASSERT_EQ(automaton.match().length, i - 1);
    ASSERT_EQ(automaton.match().end, i - 1);
  }
}

TEST(SuffixAutomaton, TakesFewBytesPerToken) {
  constexpr u32 tokens = 1 << 16;
  std::mt19937 random(1);
  // The most states per token: abbb..., and the most edges: abbb...c.
  for (u32 words : {1u, 2u, 300u, 49152u}) {
    SuffixAutomaton automaton;
    automaton.append(-1);
    for (u32 i = 0; i < tokens; ++i)
      automaton.append(i32(random() % words));
    // Vectors double, so up to half of their room is spare.
    EXPECT_LE(automaton.bytes(), u64(tokens) * 2 * 112) << words;
  }
}

std::vector<i32> proposal(std::vector<i32> tokens, u32 most) {
  NgramProposer proposer;
  auto sequence = proposer.start("");
  auto sampler = Sampler::create({}, 100);
  Proposer::Draft draft = {.sequence = sequence.get(),
                           .tokens = tokens,
                           .sampler = &*sampler,
                           .most = most};
  proposer.propose({&draft, 1});
  return draft.proposed;
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(NgramProposer, ProposesWhatFollowedLastTime) {
  EXPECT_THAT(proposal({1, 2, 3, 4, 9, 1, 2}, 3), ElementsAre(3, 4, 9));
  // The latest of equally long ones, the longest of all.
  EXPECT_THAT(proposal({1, 2, 3, 1, 2, 4, 7, 1, 2}, 1), ElementsAre(4));
  EXPECT_THAT(proposal({8, 1, 2, 3, 1, 2, 4, 8, 1, 2}, 1), ElementsAre(3));
}

TEST(NgramProposer, NeedsTwoTokensThatMatch) {
  EXPECT_THAT(proposal({1, 2, 3, 2}, 4), IsEmpty());
  EXPECT_THAT(proposal({1}, 4), IsEmpty());
  EXPECT_THAT(proposal({1, 2, 3, 4}, 4), IsEmpty());
}

TEST(NgramProposer, GoesOnWithWhatRepeats) {
  EXPECT_THAT(proposal({1, 2, 3, 1, 2, 3, 1, 2}, 7),
              ElementsAre(3, 1, 2, 3, 1, 2, 3));
  EXPECT_THAT(proposal({6, 6, 6}, 4), ElementsAre(6, 6, 6, 6));
}

TEST(NgramProposer, ForksKnowTheSame) {
  NgramProposer proposer;
  auto sampler = Sampler::create({}, 100);
  std::vector<i32> tokens = {1, 2, 3, 4, 1, 2};
  auto ask = [&](Proposer::Sequence &sequence, std::vector<i32> text) {
    Proposer::Draft draft = {
        .sequence = &sequence, .tokens = text, .sampler = &*sampler, .most = 2};
    proposer.propose({&draft, 1});
    return draft.proposed;
  };
  auto first = proposer.start("");
  ask(*first, tokens);
  auto second = proposer.fork(*first);
  EXPECT_THAT(ask(*first, {1, 2, 3, 4, 1, 2, 3, 7, 4, 1}), ElementsAre(2, 3));
  EXPECT_THAT(ask(*second, {1, 2, 3, 4, 1, 2, 3}), ElementsAre(4, 1));
}

} // namespace

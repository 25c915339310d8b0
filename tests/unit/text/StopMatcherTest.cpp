#include "runtime/text/StopMatcher.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

namespace lathe::runtime {
namespace {

using Parts = std::vector<std::string>;

struct Outcome {
  std::string text;
  bool stopped;
  size_t used; ///< Parts taken until the stop, all of them without one.
};

Outcome run(const Parts &parts, const Parts &stops, bool include = false) {
  auto matcher = StopMatcher::create(stops, include);
  EXPECT_TRUE(matcher) << matcher.error().message;
  Outcome outcome{};
  for (const std::string &part : parts) {
    ++outcome.used;
    if (matcher->push(part, outcome.text)) {
      outcome.stopped = true;
      return outcome;
    }
  }
  outcome.stopped = matcher->flush(outcome.text);
  return outcome;
}

const Parts kChain{"DEF", "G", "HI", "J", "!"};

TEST(StopMatcher, StopAcrossTokens) {
  Outcome outcome = run(kChain, {"DEFGHIJ"});
  EXPECT_EQ(outcome.text, "");
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(outcome.used, 4u);
}

TEST(StopMatcher, NothingOfTheStopWasPassedOnBefore) {
  auto matcher = StopMatcher::create({"DEFGHIJ"});
  std::string out;
  for (const char *part : {"DEF", "G", "HI"}) {
    EXPECT_FALSE(matcher->push(part, out));
    EXPECT_EQ(out, "");
  }
  EXPECT_TRUE(matcher->push("J", out));
  EXPECT_EQ(out, "");
}

TEST(StopMatcher, StopInsideTokens) {
  EXPECT_EQ(run(kChain, {"FG"}).text, "DE");
  EXPECT_EQ(run(kChain, {"FG"}, /*include=*/true).text, "DEFG");
}

TEST(StopMatcher, AStopThatDoesNotCompleteLosesNothing) {
  Outcome outcome = run(kChain, {"HIX"});
  EXPECT_EQ(outcome.text, "DEFGHIJ!");
  EXPECT_FALSE(outcome.stopped);
  EXPECT_EQ(run({"DEF", "G"}, {"FGH"}).text, "DEFG") << "held until the end";
}

TEST(StopMatcher, TheEarliestStartWins) {
  EXPECT_EQ(run(kChain, {"GHI", "FGH"}).text, "DE");
  EXPECT_EQ(run(kChain, {"FGH", "GHI"}).text, "DE");
  // Found first but started later.
  EXPECT_EQ(run({"DEFGHIJ"}, {"GH", "FGHIJ"}).text, "DE");
  EXPECT_EQ(run(kChain, {"GH", "FGHIJ"}).text, "DE");
}

TEST(StopMatcher, AWaitingStopCountsWhenTheEarlierOneFails) {
  EXPECT_EQ(run(kChain, {"GH", "FGHX"}).text, "DEF");
  EXPECT_EQ(run({"DEFGH"}, {"GH", "FGHX"}).text, "DEF") << "at the end";
  EXPECT_TRUE(run({"DEFGH"}, {"GH", "FGHX"}).stopped);
}

TEST(StopMatcher, OfEqualStartsTheShorterWins) {
  EXPECT_EQ(run(kChain, {"FGHI", "FG"}, true).text, "DEFG");
}

TEST(StopMatcher, NamesTheStop) {
  auto matcher = StopMatcher::create({"x", "GHI"});
  std::string out;
  EXPECT_TRUE(matcher->push("DEFGHIJ", out));
  EXPECT_EQ(matcher->matched(), 1u);
  EXPECT_TRUE(matcher->push("more", out));
  EXPECT_TRUE(matcher->flush(out));
  EXPECT_EQ(out, "DEF");
}

TEST(StopMatcher, WithoutStopsEverythingPassesAtOnce) {
  auto matcher = StopMatcher::create({});
  std::string out;
  EXPECT_FALSE(matcher->push("abc", out));
  EXPECT_EQ(out, "abc");
}

TEST(StopMatcher, BadStopsAreRefused) {
  EXPECT_FALSE(StopMatcher::create({""}));
  EXPECT_FALSE(StopMatcher::create({"a", ""}));
  EXPECT_FALSE(StopMatcher::create({"\xC3"}));
  EXPECT_FALSE(StopMatcher::create(Parts(StopMatcher::kMaxStops + 1, "a")));
  EXPECT_TRUE(StopMatcher::create(Parts(StopMatcher::kMaxStops, "a")));
  EXPECT_FALSE(
      StopMatcher::create({std::string(StopMatcher::kMaxStopBytes + 1, 'a')}));
  EXPECT_TRUE(
      StopMatcher::create({std::string(StopMatcher::kMaxStopBytes, 'a')}));
}

// Against the definition: the smallest start of any stop, then the shortest.
TEST(StopMatcher, RandomTextsCutAtRandomPlaces) {
  std::mt19937 random(1);
  auto letters = [&](size_t size) {
    std::string text;
    while (text.size() < size)
      text.push_back("ab"[random() % 2]);
    return text;
  };
  for (int round = 0; round < 20000; ++round) {
    std::string text = letters(random() % 14);
    Parts stops;
    for (size_t i = random() % 4; i < 4; ++i)
      stops.push_back(letters(1 + random() % 5));
    bool include = random() % 2;
    size_t best = text.npos, length = 0;
    for (const std::string &stop : stops) {
      size_t at = text.find(stop);
      if (at < best ||
          (at == best && at != text.npos && stop.size() < length)) {
        best = at;
        length = stop.size();
      }
    }
    std::string expected = text;
    if (best != text.npos)
      expected = text.substr(0, best + (include ? length : 0));
    Parts parts;
    for (size_t at = 0; at < text.size();) {
      size_t size = 1 + random() % 4;
      parts.push_back(text.substr(at, size));
      at += size;
    }
    Outcome outcome = run(parts, stops, include);
    ASSERT_EQ(outcome.text, expected)
        << text << " " << testing::PrintToString(stops);
    ASSERT_EQ(outcome.stopped, best != text.npos);
  }
}

} // namespace
} // namespace lathe::runtime

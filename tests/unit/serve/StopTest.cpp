// Stop strings and limits, streamed and not (bugs of other servers: parts of a
// stop string that were sent already, text that was swallowed, limits that were
// not kept).

#include "tests/unit/serve/ServeFixture.h"

#include <algorithm>

using namespace lathe;
using namespace lathe::tests;

namespace {

class StopTest : public ServeTest {
protected:
  void SetUp() override { serveChain(); }

  /// The answer to "x", which must be the same streamed.
  Answer both(json body) {
    body.update({{"prompt", "x"}, {"temperature", 0}});
    if (!body.contains("max_tokens"))
      body["max_tokens"] = 50;
    Answer whole = complete(body);
    EXPECT_EQ(whole.status, 200u) << whole.body;
    body.update(
        {{"stream", true}, {"stream_options", {{"include_usage", true}}}});
    Answer stream = complete(body);
    EXPECT_EQ(stream.status, 200u) << stream.body;
    EXPECT_EQ(stream.text(), whole.text());
    EXPECT_EQ(stream.finish(), whole.finish());
    EXPECT_EQ(stream.events().back()["usage"]["completion_tokens"],
              tokens(whole));
    return whole;
  }

  static u32 tokens(const Answer &answer) {
    return answer.parsed()["usage"]["completion_tokens"];
  }
};

TEST_F(StopTest, EndsAtTheEndToken) {
  Answer answer = both({});
  EXPECT_EQ(answer.text(), "DEFGHIJ!");
  EXPECT_EQ(answer.finish(), "stop");
  EXPECT_EQ(tokens(answer), 5u);
}

TEST_F(StopTest, StopOverSeveralTokensIsNeverShown) {
  Answer answer = both({{"stop", "DEFGHIJ"}});
  EXPECT_EQ(answer.text(), "");
  EXPECT_EQ(answer.finish(), "stop");
  EXPECT_EQ(tokens(answer), 4u);
  EXPECT_EQ(both({{"stop", "FG"}}).text(), "DE");
}

TEST_F(StopTest, WhatDoesNotCompleteIsNotLost) {
  Answer answer = both({{"stop", {"HIX"}}});
  EXPECT_EQ(answer.text(), "DEFGHIJ!");
  EXPECT_EQ(answer.finish(), "stop");
}

TEST_F(StopTest, TheEarliestStartWins) {
  EXPECT_EQ(both({{"stop", {"GHI", "FGH"}}}).text(), "DE");
}

TEST_F(StopTest, StopStaysIfAskedFor) {
  EXPECT_EQ(both({{"stop", "FG"}, {"include_stop_str_in_output", true}}).text(),
            "DEFG");
}

TEST_F(StopTest, ControlTokensTextStops) {
  json body = {{"stop", "<|im_end|>"}, {"ignore_eos", true}};
  EXPECT_EQ(both(body).text(), "DEFGHIJ!");
  body["include_stop_str_in_output"] = true;
  EXPECT_EQ(both(body).text(), "DEFGHIJ!<|im_end|>");
}

TEST_F(StopTest, IdsStop) {
  EXPECT_EQ(both({{"stop_token_ids", {'J'}}}).text(), "DEFGHI");
}

TEST_F(StopTest, AnyOfSeveralEndTokensEnds) {
  ChainSpec spec{.tokenizer = chainTokenizer(),
                 .followers = chain({"x", "a", "<|endoftext|>", "b"})};
  const auto &tokens = spec.tokenizer.tokens;
  spec.tokenizer.endIds.push_back(
      i32(std::ranges::find(tokens, "<|endoftext|>") - tokens.begin()));
  serve(spec);
  Answer answer = both({});
  EXPECT_EQ(answer.text(), "a");
  EXPECT_EQ(answer.finish(), "stop");
  EXPECT_EQ(both({{"ignore_eos", true}, {"max_tokens", 4}}).text(), "abb");
}

TEST_F(StopTest, IgnoredEndRunsOn) {
  Answer answer = both({{"ignore_eos", true}, {"max_tokens", 9}});
  EXPECT_EQ(answer.text(), "DEFGHIJ!");
  EXPECT_EQ(answer.finish(), "length");
  EXPECT_EQ(tokens(answer), 9u);
}

TEST_F(StopTest, WrongStopsAreRefused) {
  for (json stop : {json(""), json::array({"a", ""}), json(5),
                    json(std::vector<std::string>(17, "a"))}) {
    Answer answer = complete({{"prompt", "x"}, {"stop", stop}});
    EXPECT_EQ(answer.status, 400u) << stop;
    EXPECT_EQ(answer.parsed()["error"]["param"], "stop");
  }
}

TEST_F(StopTest, LimitsAreKept) {
  for (u32 most : {1, 2, 3}) {
    Answer answer = both({{"max_tokens", most}});
    EXPECT_EQ(tokens(answer), most);
    EXPECT_EQ(answer.finish(), "length");
  }
  Answer none = both({{"max_tokens", 0}});
  EXPECT_EQ(none.text(), "");
  EXPECT_EQ(none.finish(), "length");
  EXPECT_EQ(tokens(none), 0u);
  // Eight at a time, of which four are evaluated together.
  for (u32 most : {0, 1, 2}) {
    Answer eight = complete(
        {{"prompt", std::vector<std::string>(8, "x")}, {"max_tokens", most}});
    EXPECT_EQ(tokens(eight), 8 * most);
    for (u32 i = 0; i < 8; ++i)
      EXPECT_EQ(eight.finish(i), "length");
  }
  Answer five = chat({{"messages", {{{"role", "user"}, {"content", "x"}}}},
                      {"max_completion_tokens", 5}});
  EXPECT_EQ(tokens(five), 5u);
}

TEST_F(StopTest, WrongLimitsAreRefused) {
  for (json most : {json(-1), json(1.5), json("5x"), json(true)}) {
    Answer answer = complete({{"prompt", "x"}, {"max_tokens", most}});
    EXPECT_EQ(answer.status, 400u) << most;
    EXPECT_EQ(answer.parsed()["error"]["param"], "max_tokens");
    answer = chat({{"messages", {{{"role", "user"}, {"content", "x"}}}},
                   {"max_completion_tokens", most}});
    EXPECT_EQ(answer.status, 400u) << most;
    EXPECT_EQ(answer.parsed()["error"]["param"], "max_completion_tokens");
  }
}

} // namespace

// Log-probabilities in both APIs' shapes, of answers and of echoed prompts.

#include "tests/unit/serve/ServeFixture.h"

#include <cmath>

using namespace lathe;
using namespace lathe::tests;

namespace {

constexpr f64 near = 1e-4;

class LogProbTest : public ServeTest {
protected:
  void SetUp() override { serve(spec()); }

  static ChainSpec spec() {
    f32 half = std::log(0.5f), third = std::log(0.3f), fifth = std::log(0.2f);
    return {.tokenizer = chainTokenizer(),
            .followers = {
                {"x", {{"a", half}, {"b", third}, {"DEF", fifth}}},
                {"a", {{"\xc3", half}, {"b", third}, {"c", fifth}}},
                {"\xc3", {{"\xa9", 0}}},
                {"\xa9", {{"#505", 0}}},
                {"#505", {{"y", 0}}},
                {"y", {{"<|im_end|>", 0}}},
            }};
  }
};

TEST_F(LogProbTest, Chat) {
  server->model();
  ChainSpec spec{.tokenizer = chainTokenizer(),
                 .followers = {{"x",
                                {{"a", std::log(0.5f)},
                                 {"b", std::log(0.3f)},
                                 {"DEF", std::log(0.2f)}}},
                               {"a", {{"<|im_end|>", 0}}}}};
  spec.tokenizer.chatTemplate = "{{ messages[0].content }}";
  serve(spec);
  json body = {{"messages", {{{"role", "user"}, {"content", "x"}}}},
               {"temperature", 0},
               {"logprobs", true},
               {"top_logprobs", 3}};
  json content = chat(body).parsed()["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 1u);
  EXPECT_EQ(content[0]["token"], "a");
  EXPECT_EQ(content[0]["bytes"], json({97}));
  EXPECT_NEAR(f64(content[0]["logprob"]), std::log(0.5), near);
  const json &top = content[0]["top_logprobs"];
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[2]["token"], "DEF");
  EXPECT_EQ(top[2]["bytes"], json({68, 69, 70}));
  EXPECT_NEAR(f64(top[2]["logprob"]), std::log(0.2), near);
  body.erase("top_logprobs");
  EXPECT_EQ(chat(body).parsed()["choices"][0]["logprobs"]["content"][0]
                               ["top_logprobs"],
            json::array());
}

TEST_F(LogProbTest, Completion) {
  Answer answer =
      complete({{"prompt", "x"}, {"temperature", 0}, {"logprobs", 2}});
  EXPECT_EQ(answer.text(), "aéy");
  json shown = answer.parsed()["choices"][0]["logprobs"];
  EXPECT_EQ(shown["tokens"],
            json({"a", "bytes:\\xc3", "bytes:\\xa9", "", "y"}));
  EXPECT_EQ(shown["text_offset"], json({0, 1, 1, 2, 2}));
  ASSERT_EQ(shown["token_logprobs"].size(), 5u);
  EXPECT_NEAR(f64(shown["token_logprobs"][1]), std::log(0.5), near);
  EXPECT_NEAR(f64(shown["token_logprobs"][2]), 0, near);
  EXPECT_NEAR(f64(shown["top_logprobs"][0]["b"]), std::log(0.3), near);
  EXPECT_EQ(shown["top_logprobs"][0].size(), 2u);
}

TEST_F(LogProbTest, ChosenTokenIsAlwaysAmongTheLikeliest) {
  json shown = complete({{"prompt", "x"},
                         {"temperature", 0},
                         {"max_tokens", 1},
                         {"logprobs", 1},
                         {"logit_bias", {{"98", 50}}}})
                   .parsed()["choices"][0]["logprobs"];
  EXPECT_EQ(shown["tokens"], json({"b"}));
  // The model's own probabilities, whatever bias there is.
  EXPECT_NEAR(f64(shown["token_logprobs"][0]), std::log(0.3), near);
  EXPECT_NEAR(f64(shown["top_logprobs"][0]["a"]), std::log(0.5), near);
  EXPECT_NEAR(f64(shown["top_logprobs"][0]["b"]), std::log(0.3), near);
}

/// Streamed, every token is listed, in order, also where several make one
/// piece of text or a stop string swallows them.
TEST_F(LogProbTest, StreamsListEveryToken) {
  for (json stop : {json(nullptr), json("éy"), json("y"), json("aZ")}) {
    json body = {
        {"prompt", "x"}, {"temperature", 0}, {"logprobs", 2}, {"stop", stop}};
    json whole = complete(body).parsed();
    body.update({{"stream", true}});
    json tokens = json::array(), values = json::array(),
         offsets = json::array();
    for (const json &event : complete(body).events())
      if (const json &shown = event["choices"][0]["logprobs"];
          !shown.is_null()) {
        for (const json &each : shown["tokens"])
          tokens.push_back(each);
        for (const json &each : shown["token_logprobs"])
          values.push_back(each);
        for (const json &each : shown["text_offset"])
          offsets.push_back(each);
      }
    EXPECT_EQ(tokens, whole["choices"][0]["logprobs"]["tokens"]) << stop;
    EXPECT_EQ(values, whole["choices"][0]["logprobs"]["token_logprobs"]);
    EXPECT_EQ(offsets, whole["choices"][0]["logprobs"]["text_offset"]);
    EXPECT_EQ(tokens.size(), whole["usage"]["completion_tokens"]);
  }
}

/// Whoever drafts how well, each token has the values that it has without, and
/// pieces of several tokens list all of them.
TEST_F(LogProbTest, DraftsChangeNothing) {
  const std::vector<json> bodies = {
      {{"temperature", 0}, {"logprobs", 5}},
      {{"temperature", 0}, {"logprobs", 0}, {"stop", "éy"}},
      {{"temperature", 0}, {"logprobs", 2}, {"stop", "aZ"}},
      {{"temperature", 0}, {"logprobs", 2}, {"echo", true}, {"max_tokens", 3}},
      {{"temperature", 0}, {"ignore_eos", true}, {"logprobs", 1}},
      {{"temperature", 1}, {"seed", 3}, {"logprobs", 3}, {"n", 3}},
      {{"temperature", 0}, {"max_tokens", 1}, {"logprobs", 1}},
      {{"temperature", 1}, {"seed", 5}, {"repetition_penalty", 1.5}},
  };
  auto answers = [&] {
    std::vector<json> answers;
    for (json body : bodies)
      for (bool stream : {false, true}) {
        body.update({{"prompt", "bx"},
                     {"max_tokens", body.value("max_tokens", 20)},
                     {"stream", stream}});
        Answer answer = complete(body);
        EXPECT_EQ(answer.status, 200u) << answer.body;
        if (!stream) {
          json whole = answer.parsed();
          answers.push_back(
              {whole["choices"], whole["usage"]["completion_tokens"]});
          continue;
        }
        // Per choice: where its pieces end is no matter.
        std::map<u32, std::map<std::string, json>> joined;
        for (const json &event : answer.events())
          for (const json &choice : event["choices"]) {
            if (const json &lists = choice["logprobs"]; !lists.is_null())
              for (const auto &[name, list] : lists.items())
                for (const json &each : list)
                  joined[choice["index"]][name].push_back(each);
          }
        answers.push_back(joined);
      }
    return answers;
  };
  std::vector<json> wanted = answers();
  std::map<std::string, Followers> right = spec().followers, wrong = right;
  wrong["a"] = {{"b", 0}};
  wrong["\xa9"] = {{"z", 0}};
  for (const auto &followers : {right, wrong}) {
    serveWithDrafts(spec(), followers);
    EXPECT_EQ(answers(), wanted);
    auto drafts = server->engine().stats().scheduler.speculation;
    EXPECT_GT(drafts.accepted, 10u);
    EXPECT_LE(drafts.accepted, drafts.drafted);
    if (followers == wrong)
      EXPECT_LT(drafts.accepted, drafts.drafted / 2);
  }
}

/// As evaluation harnesses ask: the prompt's own tokens.
TEST_F(LogProbTest, EchoedPrompt) {
  for (u32 most : {0u, 1u})
    for (bool stream : {false, true}) {
      Answer answer = complete({{"prompt", "xa\xc3\xa9"},
                                {"max_tokens", most},
                                {"temperature", 0},
                                {"echo", true},
                                {"logprobs", 1},
                                {"stream", stream}});
      ASSERT_EQ(answer.status, 200u) << answer.body;
      EXPECT_EQ(answer.text(), "xaé");
      json shown = (stream ? answer.events()[0]
                           : answer.parsed())["choices"][0]["logprobs"];
      ASSERT_EQ(shown["tokens"].size(), 5 + most) << answer.body;
      EXPECT_EQ(shown["tokens"][0], "<|im_start|>");
      EXPECT_EQ(shown["token_logprobs"][0], nullptr);
      EXPECT_EQ(shown["top_logprobs"][0], nullptr);
      EXPECT_NEAR(f64(shown["token_logprobs"][2]), std::log(0.5), near);
      EXPECT_NEAR(f64(shown["token_logprobs"][3]), std::log(0.5), near);
      for (u32 i = 1; i < 5; ++i)
        EXPECT_FALSE(shown["token_logprobs"][i].is_null());
      EXPECT_EQ(shown["text_offset"][2], 1);
      EXPECT_EQ(shown["text_offset"][4], 2);
    }
  // Without log-probabilities, and as ids.
  EXPECT_EQ(
      complete({{"prompt", "x"}, {"echo", true}, {"temperature", 0}}).text(),
      "xaéy");
  EXPECT_EQ(
      complete({{"prompt", {120}}, {"echo", true}, {"max_tokens", 0}}).text(),
      "x");
}

/// What the prefix cache has is evaluated all the same where it is shown.
TEST_F(LogProbTest, EchoOfCachedTokens) {
  std::string prompt;
  for (int i = 0; i < 40; ++i)
    prompt += i % 2 ? 'a' : 'x';
  json body = {{"prompt", prompt},
               {"max_tokens", 2},
               {"temperature", 0},
               {"echo", true},
               {"logprobs", 3}};
  json cold = complete(body).parsed();
  json warm = complete(body).parsed();
  EXPECT_EQ(warm["choices"], cold["choices"]);
  body.erase("echo");
  body.erase("logprobs");
  json cached = complete(body).parsed();
  u32 count = cached["usage"]["prompt_tokens_details"]["cached_tokens"];
  EXPECT_GT(count, 0u);
  EXPECT_LE(count, 40u);
}

} // namespace

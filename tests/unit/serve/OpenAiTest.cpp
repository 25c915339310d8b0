// The shapes of OpenAI's answers, and which parameters are taken.

#include "tests/unit/serve/ServeFixture.h"

using namespace lathe;
using namespace lathe::tests;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class OpenAiTest : public ServeTest {
protected:
  void SetUp() override { serveChain(); }

  json user(const std::string &content) {
    return json::array({{{"role", "user"}, {"content", content}}});
  }
  /// A template that ends with the last message, so that it decides.
  void serveEcho() {
    ChainSpec spec{.tokenizer = chainTokenizer(),
                   .followers =
                       chain({"x", "DEF", "G", "HI", "J", "!", "<|im_end|>"})};
    spec.tokenizer.chatTemplate =
        "{% for m in messages %}{{ m.content }}{% endfor %}";
    serve(spec);
  }
  void refuses(const std::string &path, json body, const std::string &param,
               const std::string &code) {
    Answer answer = call(routes, path, body);
    EXPECT_EQ(answer.status, 400u) << body << answer.body;
    EXPECT_EQ(answer.parsed()["error"]["param"], param) << answer.body;
    EXPECT_EQ(answer.parsed()["error"]["code"], code) << answer.body;
    EXPECT_THAT(std::string(answer.parsed()["error"]["message"]),
                HasSubstr(param));
  }
};

TEST_F(OpenAiTest, WholeChat) {
  serveEcho();
  Answer answer = chat({{"model", "chain"}, {"messages", user("x")}});
  ASSERT_EQ(answer.status, 200u) << answer.body;
  json body = answer.parsed();
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(std::string(body["id"]).substr(0, 9), "chatcmpl-");
  EXPECT_TRUE(body["created"].is_number_integer());
  EXPECT_EQ(body["model"], "chain");
  EXPECT_EQ(body["system_fingerprint"], "fp_chain");
  EXPECT_EQ(body["choices"],
            json::parse(R"([{"index":0,"message":{"role":"assistant",
              "content":"DEFGHIJ!","refusal":null},"logprobs":null,
              "finish_reason":"stop"}])"));
  EXPECT_EQ(body["usage"],
            json::parse(R"({"prompt_tokens":1,"completion_tokens":5,
              "total_tokens":6,"prompt_tokens_details":{"cached_tokens":0}})"));
}

TEST_F(OpenAiTest, StreamedChat) {
  serveEcho();
  Answer answer = chat({{"messages", user("x")}, {"stream", true}});
  std::vector<json> events = answer.events();
  ASSERT_EQ(events.size(), 7u) << answer.body;
  EXPECT_EQ(events[0]["choices"][0]["delta"],
            json::parse(R"({"role":"assistant","content":""})"));
  EXPECT_EQ(events[1]["choices"][0]["delta"],
            json::parse(R"({"content":"DEF"})"));
  EXPECT_EQ(events[6]["choices"][0],
            json::parse(R"({"index":0,"delta":{},"logprobs":null,
                            "finish_reason":"stop"})"));
  for (const json &event : events) {
    EXPECT_EQ(event["object"], "chat.completion.chunk");
    EXPECT_EQ(event["id"], events[0]["id"]);
    EXPECT_EQ(event["choices"].size(), 1u) << "unasked usage";
    EXPECT_FALSE(event.contains("usage"));
  }
  EXPECT_EQ(answer.text(), "DEFGHIJ!");
}

TEST_F(OpenAiTest, UsageIsTheLastEventWhereAskedFor) {
  serveEcho();
  std::vector<json> events =
      chat({{"messages", user("x")},
            {"stream", true},
            {"stream_options", {{"include_usage", true}}}})
          .events();
  for (size_t i = 0; i + 1 < events.size(); ++i)
    EXPECT_TRUE(events[i]["usage"].is_null() && events[i].contains("usage"));
  EXPECT_EQ(events.back()["choices"], json::array());
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], 5);
}

TEST_F(OpenAiTest, UsageSoFarIsInEveryEventWhereAskedFor) {
  serveEcho();
  json body = {{"messages", user("x")},
               {"stream", true},
               {"stream_options",
                {{"include_usage", true}, {"continuous_usage_stats", true}}}};
  std::vector<json> events = chat(body).events();
  std::vector<int> counts;
  for (const json &event : events) {
    EXPECT_EQ(event["usage"]["prompt_tokens"], 1);
    counts.push_back(event["usage"]["completion_tokens"]);
    EXPECT_EQ(event["usage"]["total_tokens"], 1 + counts.back());
  }
  // The role, five pieces, the end, and all of the call.
  EXPECT_THAT(counts, ElementsAre(0, 1, 2, 3, 4, 5, 5, 5));
  EXPECT_EQ(events.back()["choices"], json::array());

  body["stream_options"] = {{"continuous_usage_stats", true}};
  for (const json &event : chat(body).events())
    EXPECT_FALSE(event.contains("usage")) << "it needs include_usage";
}

TEST_F(OpenAiTest, UsageSoFarIsOfEachAnswerAlone) {
  serveEcho();
  std::vector<json> events =
      complete({{"prompt", {"x", "aG"}},
                {"n", 2},
                {"temperature", 0},
                {"stream", true},
                {"stream_options",
                 {{"include_usage", true}, {"continuous_usage_stats", true}}}})
          .events();
  // Prompts count once for the call, but with each of their answers here.
  std::map<u32, std::vector<int>> last;
  for (const json &event : events)
    if (!event["choices"].empty())
      last[event["choices"][0]["index"]] = {
          event["usage"]["prompt_tokens"], event["usage"]["completion_tokens"]};
  ASSERT_EQ(last.size(), 4u);
  for (u32 i : {0u, 1u, 2u, 3u})
    EXPECT_THAT(last[i], i < 2 ? ElementsAre(2, 5) : ElementsAre(3, 3));
  EXPECT_EQ(events.back()["usage"]["prompt_tokens"], 5);
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], 16);
}

TEST_F(OpenAiTest, SeveralAnswersEachEndOnce) {
  for (bool stream : {false, true}) {
    Answer answer = complete({{"prompt", {"x", "aG"}},
                              {"n", 2},
                              {"best_of", 2},
                              {"temperature", 0},
                              {"stream", stream}});
    ASSERT_EQ(answer.status, 200u) << answer.body;
    for (u32 i : {0u, 1u})
      EXPECT_EQ(answer.text(i), "DEFGHIJ!");
    for (u32 i : {2u, 3u})
      EXPECT_EQ(answer.text(i), "HIJ!");
    for (u32 i = 0; i < 4; ++i)
      EXPECT_EQ(answer.finish(i), "stop");
    if (!stream) {
      EXPECT_EQ(answer.parsed()["usage"]["prompt_tokens"], 5);
      EXPECT_EQ(answer.parsed()["usage"]["completion_tokens"], 16);
    }
  }
}

TEST_F(OpenAiTest, PromptsOfAllForms) {
  auto tokens = [&](json prompt) -> json {
    Answer answer = complete({{"prompt", prompt}, {"max_tokens", 1}});
    EXPECT_EQ(answer.status, 200u) << answer.body;
    return answer.parsed()["usage"]["prompt_tokens"];
  };
  EXPECT_EQ(tokens("Hx"), 3);      // With a begin token.
  EXPECT_EQ(tokens({72, 101}), 2); // As they are.
  EXPECT_EQ(tokens({{72, 101}, {72}}), 3);
  EXPECT_EQ(tokens({"a", "b"}), 4);
  EXPECT_EQ(tokens(""), 1);
  for (json wrong :
       {json(5), json::array(), json{json::array()}, json::parse("[1, \"a\"]"),
        json::parse("[1.5]"), json::parse("[-1]"), json::parse("{}")})
    EXPECT_EQ(complete({{"prompt", wrong}}).status, 400u) << wrong;
  Answer outside = complete({{"prompt", {512}}});
  EXPECT_EQ(outside.status, 400u);
  EXPECT_THAT(outside.body, HasSubstr("512"));
  EXPECT_EQ(complete(json::object()).status, 400u);
  EXPECT_EQ(tokens("x"), 2);
}

TEST_F(OpenAiTest, EmptyPromptNeedsABeginToken) {
  ChainSpec spec{.tokenizer = chainTokenizer()};
  spec.tokenizer.addBos = false;
  serve(spec);
  for (json prompt : {json(""), json::array({""}), json::array()})
    EXPECT_EQ(complete({{"prompt", prompt}}).status, 400u) << prompt;
}

TEST_F(OpenAiTest, UnknownModelIsNotFound) {
  Answer answer = complete({{"prompt", "x"}, {"model", "other"}});
  EXPECT_EQ(answer.status, 404u);
  EXPECT_EQ(answer.parsed()["error"]["code"], "model_not_found");
}

TEST_F(OpenAiTest, Models) {
  json list = callRaw(routes, "GET", "/v1/models").parsed();
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"][0]["id"], "chain");
  EXPECT_EQ(list["data"][0]["created"], 1700000000);
  EXPECT_EQ(callRaw(routes, "GET", "/v1/models/chain").parsed(),
            list["data"][0]);
}

TEST_F(OpenAiTest, UnsupportedParametersAreNamed) {
  const char *path = "/v1/chat/completions";
  const std::vector<std::pair<std::string, json>> unsupported = {
      {"tools", {{{"type", "function"}}}},
      {"tool_choice", "required"},
      {"response_format", {{"type", "json_object"}}},
      {"functions", {{{"name", "f"}}}},
      {"audio", {{"voice", "a"}}},
      {"modalities", {"text", "audio"}},
      {"store", true},
      {"reasoning_effort", "low"},
      {"service_tier", "priority"},
      {"web_search_options", json::object()},
      {"prediction", {{"type", "content"}}},
  };
  for (const auto &[name, value] : unsupported)
    refuses(path, {{"messages", user("x")}, {name, value}}, name,
            "unsupported_parameter");
  refuses("/v1/completions", {{"prompt", "x"}, {"suffix", "y"}}, "suffix",
          "unsupported_parameter");
  refuses(path, {{"messages", user("x")}, {"temprature", 1}}, "temprature",
          "unknown_parameter");
  // What changes nothing is taken.
  Answer answer = chat({{"messages", user("x")},
                        {"max_tokens", 1},
                        {"tools", json::array()},
                        {"tool_choice", "auto"},
                        {"response_format", {{"type", "text"}}},
                        {"store", false},
                        {"audio", nullptr},
                        {"user", "me"},
                        {"service_tier", "auto"}});
  EXPECT_EQ(answer.status, 200u) << answer.body;
}

TEST_F(OpenAiTest, WrongValuesAreNamed) {
  const std::vector<std::pair<std::string, json>> wrong = {
      {"temperature", 2.5},
      {"temperature", "1"},
      {"top_p", -0.1},
      {"n", 0},
      {"n", 1.0},
      {"seed", 0.5},
      {"presence_penalty", 3},
      {"frequency_penalty", true},
      {"logit_bias", {{"x", 1}}},
      {"logprobs", 21},
      {"stream", 1},
      {"min_p", 1},
      {"top_k", -2},
      {"repetition_penalty", 0},
      {"stop_token_ids", {"a"}},
      {"priority", 1001},
      {"echo", "yes"},
      {"best_of", 2},
      {"stream_options", {{"include_usage", true}}},
      {"user", 5},
  };
  for (const auto &[name, value] : wrong)
    refuses("/v1/completions", {{"prompt", "x"}, {name, value}}, name,
            name == "best_of" ? "unsupported_parameter" : "invalid_value");
  refuses("/v1/chat/completions",
          {{"messages", user("x")}, {"top_logprobs", 2}}, "top_logprobs",
          "invalid_value");
  refuses("/v1/chat/completions",
          {{"messages", user("x")},
           {"max_tokens", 2},
           {"max_completion_tokens", 3}},
          "max_tokens", "invalid_value");
  // More answers than can be made together.
  EXPECT_EQ(complete({{"prompt", "x"}, {"n", 5}}).status, 400u);
}

TEST_F(OpenAiTest, SamplingParametersArrive) {
  // Two tokens that are nearly alike after "x".
  serve({.tokenizer = chainTokenizer(),
         .followers = {{"x", {{"a", 0}, {"b", -0.1f}, {"c", -3}}}}});
  auto text = [&](json body) {
    body.update({{"prompt", "x"}, {"max_tokens", 1}});
    return complete(body).text();
  };
  EXPECT_EQ(text({{"temperature", 0}}), "a");
  EXPECT_EQ(text({{"temperature", 0}, {"logit_bias", {{"98", 5}}}}), "b");
  EXPECT_EQ(text({{"top_k", 1}}), "a");
  EXPECT_EQ(text({{"top_p", 0}}), "a");
  EXPECT_EQ(text({{"min_p", 0.95}}), "a");
  std::string seeded = text({{"seed", 7}});
  bool isOtherSeen = false;
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(text({{"seed", 7}}), seeded);
    isOtherSeen |= text(json::object()) != seeded;
  }
  EXPECT_TRUE(isOtherSeen) << "without a seed, all answers are alike";
  // The prompt's own token is made unlikely.
  EXPECT_EQ(call(routes, "/v1/completions",
                 {{"prompt", "ax"},
                  {"max_tokens", 1},
                  {"temperature", 0},
                  {"presence_penalty", 1}})
                .text(),
            "b");
}

TEST_F(OpenAiTest, ProbesFollowDraining) {
  for (const char *path : {"/livez", "/readyz", "/health"})
    EXPECT_EQ(callRaw(routes, "GET", path).status, 200u);
  server->model()->isDraining = true;
  EXPECT_EQ(callRaw(routes, "GET", "/livez").status, 200u);
  EXPECT_EQ(callRaw(routes, "GET", "/readyz").status, 503u);
  EXPECT_EQ(callRaw(routes, "GET", "/health").status, 503u);
  Answer answer = complete({{"prompt", "x"}});
  EXPECT_EQ(answer.status, 503u);
  EXPECT_EQ(answer.header("Retry-After"), "1");
}

} // namespace

// Ollama's API.

#include "tests/unit/serve/ServeFixture.h"

#include <cmath>
#include <sstream>

using namespace lathe;
using namespace lathe::tests;
using testing::HasSubstr;

namespace {

class OllamaTest : public ServeTest {
protected:
  void SetUp() override {
    ChainSpec spec{.tokenizer = chainTokenizer(),
                   .followers =
                       chain({"x", "DEF", "G", "HI", "J", "!", "<|im_end|>"})};
    spec.tokenizer.chatTemplate =
        "{% for m in messages %}{{ m.content }}{% endfor %}";
    serve(spec);
  }

  json messages() const {
    return json::array({{{"role", "user"}, {"content", "x"}}});
  }
  static std::vector<json> lines(const Answer &answer) {
    EXPECT_EQ(answer.type, "application/x-ndjson");
    std::vector<json> lines;
    std::istringstream in(answer.body);
    for (std::string line; std::getline(in, line);)
      lines.push_back(json::parse(line));
    return lines;
  }
};

TEST_F(OllamaTest, Chat) {
  json body = {{"model", "chain:latest"},
               {"messages", messages()},
               {"stream", false},
               {"keep_alive", "5m"},
               {"options", {{"temperature", 0}, {"num_thread", 3}}}};
  Answer answer = call(routes, "/api/chat", body);
  ASSERT_EQ(answer.status, 200u) << answer.body;
  json whole = answer.parsed();
  EXPECT_EQ(whole["model"], "chain");
  EXPECT_EQ(whole["message"],
            json::parse(R"({"role":"assistant","content":"DEFGHIJ!"})"));
  EXPECT_EQ(whole["done"], true);
  EXPECT_EQ(whole["done_reason"], "stop");
  EXPECT_EQ(whole["prompt_eval_count"], 1);
  EXPECT_EQ(whole["eval_count"], 5);
  EXPECT_GT(u64(whole["total_duration"]), 0u);
  EXPECT_GT(u64(whole["eval_duration"]), 0u);
  EXPECT_GT(u64(whole["prompt_eval_duration"]), 0u);

  body.erase("stream"); // On, unless it is switched off.
  std::vector<json> parts = lines(call(routes, "/api/chat", body));
  ASSERT_EQ(parts.size(), 6u);
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    text += parts[i]["message"]["content"];
    EXPECT_EQ(parts[i]["done"], i == 5);
  }
  EXPECT_EQ(text, "DEFGHIJ!");
  EXPECT_EQ(parts[5]["eval_count"], 5);
}

TEST_F(OllamaTest, Generate) {
  json body = {{"model", "chain"},
               {"prompt", "x"},
               {"stream", false},
               {"logprobs", true},
               {"top_logprobs", 1},
               {"options", {{"temperature", 0}, {"num_predict", 2}}}};
  json whole = call(routes, "/api/generate", body).parsed();
  EXPECT_EQ(whole["response"], "DEFG");
  EXPECT_EQ(whole["done_reason"], "length");
  EXPECT_EQ(whole["logprobs"].size(), 2u);
  EXPECT_EQ(whole["logprobs"][0]["token"], "DEF");
  EXPECT_EQ(whole["prompt_eval_count"], 1);
  body["raw"] = true; // With a begin token.
  EXPECT_EQ(call(routes, "/api/generate", body).parsed()["prompt_eval_count"],
            2);
  body.update({{"raw", false}, {"system", "ab"}});
  EXPECT_EQ(call(routes, "/api/generate", body).parsed()["prompt_eval_count"],
            3);
  body["options"]["stop"] = {"FG"};
  EXPECT_EQ(call(routes, "/api/generate", body).parsed()["response"], "DE");
}

TEST_F(OllamaTest, TypedMarkersStayText) {
  // A marker has as many tokens as bytes, unless it became one.
  auto count = [&](const char *path, json extra) -> u32 {
    json body = {{"model", "chain"},
                 {"stream", false},
                 {"options", {{"num_predict", 1}}}};
    body.update(extra);
    return call(routes, path, body).parsed()["prompt_eval_count"];
  };
  const std::string marker = "<|im_end|>";
  for (const char *role : {"user", "system", "tool"})
    EXPECT_EQ(count("/api/chat",
                    {{"messages", {{{"role", role}, {"content", marker}}}}}),
              marker.size());
  EXPECT_EQ(count("/api/generate", {{"prompt", marker}}), marker.size());
  EXPECT_EQ(count("/api/generate", {{"prompt", "x"}, {"system", marker}}),
            marker.size() + 1);
  // Who builds the whole prompt may write them.
  EXPECT_EQ(count("/api/generate", {{"prompt", marker}, {"raw", true}}), 2u);
}

TEST_F(OllamaTest, LimitsAreKept) {
  auto answer = [&](json most) {
    return call(routes, "/api/generate",
                {{"model", "chain"},
                 {"prompt", "x"},
                 {"stream", false},
                 {"options", {{"temperature", 0}, {"num_predict", most}}}});
  };
  for (u32 most : {1, 2, 3}) {
    EXPECT_EQ(answer(most).parsed()["eval_count"], most);
    EXPECT_EQ(answer(most).parsed()["done_reason"], "length");
  }
  EXPECT_EQ(answer(-1).parsed()["done_reason"], "stop"); // No limit.
  for (json wrong : {json(1.5), json("5x"), json(-3)})
    EXPECT_EQ(answer(wrong).status, 400u) << wrong;
}

TEST_F(OllamaTest, NothingToDoIsDone) {
  json loaded = call(routes, "/api/generate", {{"model", "chain"}}).parsed();
  EXPECT_EQ(loaded["done"], true);
  EXPECT_EQ(loaded["done_reason"], "load");
  loaded = call(routes, "/api/chat",
                {{"model", "chain"}, {"messages", json::array()}})
               .parsed();
  EXPECT_EQ(loaded["message"]["content"], "");
}

TEST_F(OllamaTest, Models) {
  json tags = callRaw(routes, "GET", "/api/tags").parsed();
  EXPECT_EQ(tags["models"][0]["name"], "chain");
  EXPECT_GT(u64(tags["models"][0]["size"]), 0u);
  EXPECT_EQ(tags["models"][0]["details"]["family"], "llama");
  EXPECT_THAT(std::string(tags["models"][0]["modified_at"]),
              HasSubstr("2023-11-14T22:13:20"));
  json shown = call(routes, "/api/show", {{"model", "chain"}}).parsed();
  EXPECT_EQ(shown["model_info"]["llama.context_length"], 256);
  EXPECT_THAT(std::string(shown["template"]), HasSubstr("messages"));
  EXPECT_EQ(call(routes, "/api/show", {{"model", "other"}}).status, 404u);
  EXPECT_TRUE(
      callRaw(routes, "GET", "/api/version").parsed()["version"].is_string());
}

TEST_F(OllamaTest, RefusalsAreInItsShape) {
  auto error = [&](json extra) -> std::string {
    json body = {{"model", "chain"}, {"messages", messages()}};
    body.update(extra);
    Answer answer = call(routes, "/api/chat", body);
    EXPECT_GE(answer.status, 400u) << extra;
    json parsed = answer.parsed();
    EXPECT_EQ(parsed.size(), 1u);
    return parsed["error"];
  };
  EXPECT_THAT(error({{"tools", {{{"type", "function"}}}}}), HasSubstr("tools"));
  EXPECT_THAT(error({{"format", "json"}}), HasSubstr("format"));
  EXPECT_THAT(error({{"think", true}}), HasSubstr("think"));
  EXPECT_THAT(error({{"options", {{"mirostat", 1}}}}), HasSubstr("mirostat"));
  EXPECT_THAT(error({{"options", {{"nonsense", 1}}}}), HasSubstr("nonsense"));
  EXPECT_THAT(error({{"options", {{"num_ctx", 257}}}}), HasSubstr("num_ctx"));
  EXPECT_THAT(error({{"options", {{"temperature", "a"}}}}),
              HasSubstr("temperature"));
  EXPECT_THAT(error({{"model", "other"}}), HasSubstr("not found"));
  EXPECT_THAT(
      error({{"messages",
              {{{"role", "user"}, {"content", "a"}, {"images", {"aGk="}}}}}}),
      HasSubstr("images"));
}

TEST_F(OllamaTest, PenaltiesCanBeSwitchedOff) {
  // "a" again is likeliest, unless it is penalized.
  serve({.tokenizer = chainTokenizer(),
         .followers = {{"a", {{"a", 1}, {"b", 0.95f}}}}});
  auto answer = [&](json options) -> std::string {
    options.update({{"temperature", 0}, {"num_predict", 1}});
    return call(routes, "/api/generate",
                {{"model", "chain"},
                 {"prompt", "a"},
                 {"raw", true},
                 {"stream", false},
                 {"options", options}})
        .parsed()["response"];
  };
  EXPECT_EQ(answer(json::object()), "b");
  EXPECT_EQ(answer({{"repeat_last_n", 0}}), "a");
  EXPECT_EQ(answer({{"repeat_penalty", 1}}), "a");
  EXPECT_EQ(answer({{"repeat_last_n", -1}}), "b");
}

} // namespace

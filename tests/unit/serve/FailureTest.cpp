// What clients are told when something fails, before and after the first token;
// and that nothing goes on for clients that are gone.

#include "tests/unit/serve/ServeFixture.h"

#include <cmath>
#include <thread>

using namespace lathe;
using namespace lathe::tests;
using testing::HasSubstr;

namespace {

class FailureTest : public ServeTest {
protected:
  /// Never ends by itself, and is slow.
  void serveSlowly(u32 running = 1, u32 waiting = 1) {
    serve(slow(running, waiting));
  }
  static ChainSpec slow(u32 running, u32 waiting) {
    ChainSpec spec{.tokenizer = chainTokenizer(),
                   .followers = {{"x", {{"a", 0}}}},
                   .pausesPerStep = 20'000};
    spec.options.maxRunning = running;
    spec.options.maxWaiting = waiting;
    return spec;
  }
  std::shared_ptr<FakeResponder> beginLong(bool stream = true) {
    json body = {{"prompt", "x"},
                 {"max_tokens", 200},
                 {"temperature", 0},
                 {"stream", stream}};
    return begin(routes, "POST", "/v1/completions", body.dump());
  }
  /// Whether the engine has nothing to do within a second.
  bool comesToRest() {
    for (int i = 0; i < 1000; ++i) {
      auto stats = server->engine().stats().scheduler;
      if (stats.running == 0 && stats.waiting == 0)
        return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
};

TEST_F(FailureTest, EngineFailsAfterTokens) {
  serve({.tokenizer = chainTokenizer(),
         .followers = {{"x", {{"a", 0}}},
                       {"a", {{"b", 0}}},
                       {"b", {{"c", 0}}},
                       {"c", {{"d", NAN}}}}});
  json body = {{"prompt", "x"}, {"temperature", 0}};
  Answer whole = complete(body);
  EXPECT_EQ(whole.status, 500u);
  EXPECT_EQ(whole.parsed()["error"]["code"], "engine_failed");
  body["stream"] = true;
  Answer stream = complete(body);
  EXPECT_EQ(stream.status, 200u);
  std::vector<json> events = stream.events();
  ASSERT_EQ(events.size(), 4u) << stream.body;
  EXPECT_TRUE(events[3].contains("error"));
  EXPECT_EQ(events[2]["choices"][0]["text"], "c");
  // Before the first token, it is an HTTP error.
  body["prompt"] = "c";
  EXPECT_EQ(complete(body).status, 500u);
  EXPECT_TRUE(comesToRest());
}

TEST_F(FailureTest, PromptLogProbsFail) {
  serve({.tokenizer = chainTokenizer(), .followers = {{"c", {{"d", NAN}}}}});
  Answer answer = complete(
      {{"prompt", "xcx"}, {"echo", true}, {"logprobs", 1}, {"max_tokens", 0}});
  EXPECT_EQ(answer.status, 500u);
  EXPECT_TRUE(comesToRest());
}

TEST_F(FailureTest, FullQueue) {
  serveSlowly();
  auto first = beginLong(), second = beginLong();
  EXPECT_TRUE(first->waitForWrites(1));
  Answer refused;
  for (bool stream : {false, true}) {
    refused = complete({{"prompt", "x"}, {"stream", stream}});
    EXPECT_EQ(refused.status, 429u) << refused.body;
    EXPECT_EQ(refused.header("Retry-After"), "1");
    EXPECT_EQ(refused.parsed()["error"]["type"], "rate_limit_error");
  }
  // More than can ever be there is not worth coming again for.
  EXPECT_EQ(complete({{"prompt", {"x", "x", "x"}}}).status, 400u);
  first->leave();
  second->leave();
  EXPECT_TRUE(comesToRest());
  EXPECT_EQ(complete({{"prompt", "x"}, {"max_tokens", 1}}).status, 200u);
}

/// The first of two prompts is taken and the second is not.
TEST_F(FailureTest, PartOfACallIsRefused) {
  serveSlowly(1, 2);
  auto first = beginLong(), second = beginLong();
  EXPECT_TRUE(first->waitForWrites(1));
  Answer refused = complete({{"prompt", {"x", "x"}}, {"stream", true}});
  EXPECT_EQ(refused.status, 429u) << refused.body;
  first->leave();
  second->leave();
  EXPECT_TRUE(comesToRest());
}

TEST_F(FailureTest, TooLongForTheContext) {
  ChainSpec spec{.tokenizer = chainTokenizer(),
                 .followers = {{"x", {{"x", 0}}}}};
  serve(spec);
  for (bool stream : {false, true}) {
    Answer answer =
        complete({{"prompt", std::string(299, 'x')}, {"stream", stream}});
    EXPECT_EQ(answer.status, 400u);
    json error = answer.parsed()["error"];
    EXPECT_EQ(error["code"], "context_length_exceeded");
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_THAT(std::string(error["message"]), HasSubstr("300"));
    EXPECT_THAT(std::string(error["message"]), HasSubstr("256"));
  }
  // Whether anybody else is being answered is no matter.
  auto other = beginLong();
  EXPECT_TRUE(other->waitForWrites(1));
  EXPECT_EQ(
      complete({{"prompt", std::string(299, 'x')}}).parsed()["error"]["code"],
      "context_length_exceeded");
  other->leave();
  EXPECT_TRUE(comesToRest());
  // What fits is answered as far as there is room.
  Answer full = complete({{"prompt", std::string(249, 'x')},
                          {"max_tokens", 50},
                          {"temperature", 0}});
  EXPECT_EQ(full.finish(), "length");
  EXPECT_EQ(full.text(), "xxxxxx");
  spec.options.context = 64;
  serve(spec);
  Answer smaller = complete({{"prompt", std::string(99, 'x')}});
  EXPECT_EQ(smaller.status, 400u);
  EXPECT_THAT(smaller.body, HasSubstr("64"));
}

TEST_F(FailureTest, ClientsThatLeaveStopTheirAnswers) {
  serveSlowly(1, 4);
  for (bool stream : {true, false}) {
    auto running = beginLong(stream), waiting = beginLong(stream);
    if (stream)
      EXPECT_TRUE(running->waitForWrites(1));
    waiting->leave();
    running->leave();
    EXPECT_TRUE(comesToRest());
    EXPECT_FALSE(waiting->isDone);
  }
  // Gone before the answer was even begun.
  auto responder = std::make_shared<FakeResponder>();
  responder->leave();
  json body = {{"prompt", "x"}, {"max_tokens", 200}};
  routes.find("POST", "/v1/completions")
      ->handler({.method = "POST",
                 .path = "/v1/completions",
                 .query = "",
                 .body = body.dump()},
                responder);
  EXPECT_TRUE(comesToRest());
  EXPECT_EQ(server->engine().stats().kvUsage, 0);
}

/// Within a step, not when the prompt has been evaluated.
TEST_F(FailureTest, ClientsThatLeaveStopTheirPrefill) {
  ChainSpec spec = slow(1, 1);
  spec.options.stepRows = 2;
  serve(spec);
  json body = {{"prompt", std::string(240, 'x')}, {"max_tokens", 1}};
  auto responder = begin(routes, "POST", "/v1/completions", body.dump());
  while (server->engine().stats().scheduler.promptRows == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  responder->leave();
  EXPECT_TRUE(comesToRest());
  EXPECT_LT(server->engine().stats().scheduler.promptRows, 200u);
  EXPECT_EQ(server->engine().stats().kvUsage, 0);
}

TEST_F(FailureTest, OneAnswerOfSeveralStaysAlone) {
  serveSlowly(2, 4);
  // But for what each answer has of its own.
  auto shown = [](const FakeResponder &responder) {
    std::vector<json> events =
        Answer{200, responder.type, responder.body, {}}.events();
    for (json &event : events) {
      event.erase("created");
      event.erase("id");
    }
    return events;
  };
  auto alone = beginLong();
  EXPECT_TRUE(alone->wait());
  auto stays = beginLong();
  for (bool stream : {true, false})
    for (int i = 0; i < 10; ++i) {
      auto running = beginLong(stream), waiting = beginLong(stream);
      if (stream)
        EXPECT_TRUE(running->waitForWrites(1));
      waiting->leave();
      running->leave();
    }
  EXPECT_TRUE(stays->wait());
  EXPECT_EQ(shown(*stays), shown(*alone));
}

/// Whether a draft is right or wrong, and however many there are.
TEST_F(FailureTest, ClientsThatLeaveStopTheirDrafts) {
  for (const char *draft : {"a", "b"}) {
    ChainSpec spec = slow(2, 2);
    serveWithDrafts(spec, {{"x", {{"a", 0}}}, {"a", {{draft, 0}}}}, 8);
    for (int i = 0; i < 10; ++i) {
      auto first = beginLong(), second = beginLong(i % 2 == 0);
      EXPECT_TRUE(first->waitForWrites(1 + size_t(i) % 3));
      first->leave();
      second->leave();
      EXPECT_TRUE(comesToRest());
    }
    runtime::ServingStats stats = server->engine().stats();
    EXPECT_EQ(stats.kvUsage, 0);
    EXPECT_GT(stats.scheduler.speculation.drafted, 0u);
    auto whole = beginLong();
    EXPECT_TRUE(whole->wait());
    EXPECT_EQ((Answer{200, whole->type, whole->body, {}}.text()),
              std::string(200, 'a'));
  }
}

TEST_F(FailureTest, DeadlinesEndRequests) {
  serveSlowly();
  server->model()->requestTime = std::chrono::milliseconds(1);
  auto first = beginLong();
  EXPECT_TRUE(first->wait());
  EXPECT_THAT(first->body, HasSubstr("timeout"));
  server->model()->requestTime = std::chrono::nanoseconds(1);
  Answer late = complete({{"prompt", "x"}, {"stream", true}});
  EXPECT_EQ(late.status, 504u);
}

TEST_F(FailureTest, TheServerEnds) {
  serveSlowly();
  auto running = beginLong(), waiting = beginLong(false);
  EXPECT_TRUE(running->waitForWrites(1));
  server->engine().stop();
  EXPECT_TRUE(running->wait());
  EXPECT_TRUE(waiting->wait());
  EXPECT_THAT(running->body, HasSubstr("shutting_down"));
  EXPECT_THAT(running->body, testing::EndsWith("data: [DONE]\n\n"));
  EXPECT_EQ(waiting->status, 503u);
  EXPECT_EQ(complete({{"prompt", "x"}}).status, 503u);
}

} // namespace

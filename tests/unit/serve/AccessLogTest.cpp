#include "runtime/serve/AccessLog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sstream>

using namespace lathe;
using namespace lathe::runtime;
using namespace lathe::runtime::serve;
using testing::EndsWith;
using testing::HasSubstr;

namespace {

class AccessLogTest : public testing::Test {
protected:
  std::unique_ptr<AccessLog> open(bool isJson) {
    auto logger = std::make_shared<spdlog::logger>(
        "access", std::make_shared<spdlog::sinks::ostream_sink_mt>(written));
    logger->set_pattern("%l %v");
    logger->set_level(spdlog::level::debug);
    return std::make_unique<AccessLog>(logger, isJson);
  }

  std::shared_ptr<RequestObserver> start(AccessLog &log) {
    return log.onRequest({.callId = "call-1",
                          .endpoint = "/v1/completions",
                          .request = prompt,
                          .promptText = "a secret",
                          .stops = {}});
  }

  http::AccessRecord record(u32 status = 200) {
    return {.request = request,
            .status = status,
            .bytes = 512,
            .seconds = 0.25,
            .isComplete = true};
  }

  /// The JSON behind the level.
  nlohmann::json json() {
    std::string text = written.str();
    EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
    return nlohmann::json::parse(text.substr(text.find(' ')));
  }

  std::ostringstream written;
  Request prompt{.prompt = {1, 2, 3}};
  http::Request request{.method = "POST",
                        .path = "/v1/completions",
                        .query = "key=secret",
                        .headers = {{"authorization", "Bearer secret"}},
                        .body = "{\"prompt\":\"a secret\"}",
                        .id = "call-1"};
};

TEST_F(AccessLogTest, JsonHasTheFactsAndNoText) {
  auto log = open(/*isJson=*/true);
  auto counter = start(*log);
  counter->onToken(0, 7, 1);
  counter->onText(0, "secret");
  counter->onToken(0, 8, 2);
  log->log(record());
  EXPECT_THAT(written.str(), testing::Not(HasSubstr("secret")));
  nlohmann::json line = json();
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["request_id"], "call-1");
  EXPECT_EQ(line["method"], "POST");
  EXPECT_EQ(line["path"], "/v1/completions");
  EXPECT_EQ(line["status"], 200);
  EXPECT_EQ(line["duration_seconds"], 0.25);
  EXPECT_EQ(line["bytes"], 512);
  EXPECT_EQ(line["is_complete"], true);
  EXPECT_EQ(line["prompt_tokens"], 3);
  EXPECT_EQ(line["completion_tokens"], 2);
  EXPECT_THAT(line["time"].get<std::string>(), EndsWith("Z"));
}

TEST_F(AccessLogTest, WithoutTokensTheyAreLeftOut) {
  auto log = open(/*isJson=*/true);
  request.path = "/v1/\"mod\nels\xff";
  log->log(record(404));
  nlohmann::json line = json();
  EXPECT_FALSE(line.contains("prompt_tokens"));
  EXPECT_EQ(line["path"], "/v1/\"mod\nels\xef\xbf\xbd");
}

TEST_F(AccessLogTest, TextIsOneLineWhateverTheClientSent) {
  auto log = open(/*isJson=*/false);
  start(*log)->onToken(0, 7, 1);
  request.path = "/v1\n/x";
  auto gone = record();
  gone.isComplete = false;
  log->log(gone);
  EXPECT_EQ(written.str(), "info 'call-1' POST '/v1\\x0a/x': 200, 250 ms, "
                           "3 + 1 tokens, client gone\n");
}

TEST_F(AccessLogTest, LevelsTellProbesAndFailures) {
  auto log = open(/*isJson=*/false);
  request.path = "/metrics";
  log->log(record());
  EXPECT_THAT(written.str(), testing::StartsWith("debug "));
  written.str("");
  log->log(record(401));
  EXPECT_THAT(written.str(), testing::StartsWith("info "));
  written.str("");
  log->log(record(503));
  EXPECT_THAT(written.str(), testing::StartsWith("warning "));
}

TEST_F(AccessLogTest, TokensOfAnEarlierCallOfTheSameIdAreNotCounted) {
  auto log = open(/*isJson=*/true);
  auto late = start(*log);
  log->log(record());
  late->onToken(0, 1, 1);
  written.str("");
  log->log(record());
  EXPECT_FALSE(json().contains("prompt_tokens"));
}

} // namespace

// Who is let in.
#include "runtime/serve/http/ErrorReply.h"
#include "tests/unit/http/Errors.h"
#include "tests/unit/http/TestServer.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lathe::tests {

static http::HttpOptions withKeys() { return {.keys = {"first", "second"}}; }

static Answer askWith(const TestServer &server, const http::Route &route,
                      std::string_view headers) {
  Client client = server.connect();
  return client.ask(fmt::format("{} {} HTTP/1.1\r\nHost: h\r\nContent-Length: "
                                "0\r\n{}\r\n",
                                route.method, route.path, headers));
}

TEST(HttpAccess, EveryRouteThatIsNotOpenNeedsAKey) {
  TestServer server(withKeys());
  http::Routes routes = testRoutes([](const http::Request &, const auto &) {});
  ASSERT_GT(routes.all().size(), 5u);
  for (const http::Route &route : routes.all()) {
    for (const char *headers :
         {"", "Authorization: Bearer\r\n", "Authorization: Bearer \r\n",
          "Authorization: Bearer wrong\r\n", "Authorization: Bearer firs\r\n",
          "Authorization: Bearer first2\r\n", "Authorization: first\r\n",
          "Authorization: Basic first\r\n", "X-Api-Key: first\r\n",
          // "first:", "first:second2", and "u:first" without its padding.
          "Authorization: Basic Zmlyc3Q6\r\n",
          "Authorization: Basic Zmlyc3Q6c2Vjb25kMg==\r\n",
          "Authorization: Basic dTpmaXJzdA\r\n"}) {
      if (route.access == http::Access::Open) {
        EXPECT_EQ(askWith(server, route, headers).status, 200u);
        continue;
      }
      Answer answer = askWith(server, route, headers);
      expectError(answer, 401);
      EXPECT_EQ(answer.header("www-authenticate"),
                route.access == http::Access::PromptedKey
                    ? R"(Basic realm="lathe", charset="UTF-8")"
                    : "Bearer");
    }
    if (route.path == "/hold")
      continue;
    for (const char *headers :
         {"Authorization: Bearer first\r\n", "authorization: bearer second\r\n",
          "Authorization: Bearer  first\r\n",
          // "u:first" and ":second"
          "Authorization: Basic dTpmaXJzdA==\r\n",
          "authorization: basic OnNlY29uZA==\r\n"})
      EXPECT_NE(askWith(server, route, headers).status, 401u) << route.path;
  }
}

TEST(HttpAccess, WhatABrowserAddsByItselfIsNoOtherPagesToUse) {
  TestServer server(withKeys());
  Client client = server.connect();
  std::string basic = "Authorization: Basic OmZpcnN0\r\n";
  for (const char *own :
       {"Origin: http://here\r\n", "Origin: https://here\r\n",
        "Sec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: none\r\n"})
    EXPECT_EQ(client.ask(get("/page", basic + own)).status, 200u) << own;
  for (std::string other :
       {"Origin: null\r\n", "Origin: http://127.0.0.1\r\n",
        "Origin: http://here:8081\r\n", "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n"}) {
    for (const char *path : {"/page", "/id", "/nowhere"}) {
      Answer answer = client.ask(get(path, basic + other));
      expectError(answer, 403);
      EXPECT_EQ(answer.header("www-authenticate"), "");
      EXPECT_EQ(answer.body.find("127.0.0.1"), answer.body.npos);
    }
    // Others do not learn whether the key is one.
    std::string wrong = "Authorization: Basic Ondyb25n\r\n";
    expectError(client.ask(get("/page", wrong + other)), 401);
    // What a page has to add by itself, it knows.
    std::string bearer = "Authorization: Bearer first\r\n";
    EXPECT_EQ(client.ask(get("/page", bearer + other)).status, 200u) << other;
    EXPECT_EQ(client.ask(get("/hello", other)).status, 200u) << other;
  }
}

TEST(HttpAccess, StrangersLearnNothing) {
  TestServer server(withKeys());
  Client client = server.connect();
  std::string unknown = client.ask(get("/nowhere")).body;
  EXPECT_EQ(unknown, client.ask(get("/id")).body);
  // Of an open path, just the method that is open.
  expectError(client.ask("DELETE /hello HTTP/1.1\r\nHost: h\r\n\r\n"), 401);
  // Another method than the route's, and a path that is none.
  expectError(client.ask(get("/echo")), 401);
  // With a key they are told apart.
  std::string key = "Authorization: Bearer first\r\n";
  expectError(client.ask(get("/nowhere", key)), 404);
  expectError(client.ask(get("/echo", key)), 405);
  // HEAD is let in where GET is.
  EXPECT_EQ(client.ask("HEAD /hello HTTP/1.1\r\nHost: h\r\n\r\n", true).status,
            200u);
  EXPECT_EQ(client.ask("HEAD /id HTTP/1.1\r\nHost: h\r\n\r\n", true).status,
            401u);
}

TEST(HttpAccess, ABodyIsNotReadFromStrangers) {
  TestServer server(withKeys());
  Client client = server.connect();
  expectError(client.ask("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: "
                         "1000\r\nExpect: 100-continue\r\n\r\n"),
              401);
  EXPECT_TRUE(client.isClosed());
}

TEST(HttpAccess, WithoutKeysEverybodyIsLetIn) {
  TestServer server;
  EXPECT_EQ(server.connect().ask(get("/id")).status, 200u);
}

TEST(HttpErrors, TypesFollowFromTheStatus) {
  const std::pair<u32, const char *> cases[] = {
      {400, "invalid_request_error"}, {401, "authentication_error"},
      {403, "permission_error"},      {404, "invalid_request_error"},
      {413, "invalid_request_error"}, {429, "rate_limit_error"},
      {500, "server_error"},          {503, "server_error"}};
  for (auto [status, type] : cases) {
    http::Reply reply = http::errorReply(status, "text");
    EXPECT_EQ(reply.status, status);
    auto error = nlohmann::json::parse(reply.body)["error"];
    EXPECT_EQ(error["type"], type);
    EXPECT_EQ(error["message"], "text");
    EXPECT_TRUE(error["param"].is_null());
    EXPECT_TRUE(error["code"].is_null());
  }
  auto error = nlohmann::json::parse(
      http::errorReply(400, "text", "the_code", "n").body)["error"];
  EXPECT_EQ(error["code"], "the_code");
  EXPECT_EQ(error["param"], "n");
}

TEST(HttpErrors, MessagesNeedNotBeUtf8) {
  http::Reply reply =
      http::errorReply(400, "a\xc3\x28\xff\n\"", "\xff", "\xff");
  auto error = nlohmann::json::parse(reply.body)["error"];
  EXPECT_EQ(error["message"], "a\xef\xbf\xbd(\xef\xbf\xbd\n\"");
}

} // namespace lathe::tests

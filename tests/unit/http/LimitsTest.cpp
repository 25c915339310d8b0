// What a client may take up, and what happens beyond.
#include "tests/unit/http/Errors.h"
#include "tests/unit/http/TestServer.h"

#include <gtest/gtest.h>
#include <thread>

namespace lathe::tests {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST(HttpLimits, Headers) {
  TestServer server({.limits = {.headerBytes = 1000}});
  std::string fits(900, 'x'), tooLong(1000, 'x');
  Client client = server.connect();
  EXPECT_EQ(client.ask(get("/hello", "X: " + fits + "\r\n")).status, 200u);
  EXPECT_EQ(client.ask(get("/hello?" + fits)).status, 200u);
  // However it is distributed over line and headers, and if it never ends.
  for (const std::string &bytes :
       {get("/hello", "X: " + tooLong + "\r\n"), get("/hello?" + tooLong),
        get("/hello?" + fits, "X: " + fits + "\r\n"),
        "GET /hello HTTP/1.1\r\nX: " + tooLong, tooLong}) {
    Client fresh = server.connect();
    expectError(fresh.ask(bytes), 431);
    EXPECT_TRUE(fresh.isClosed());
  }
}

TEST(HttpLimits, Bodies) {
  TestServer server({.limits = {.bodyBytes = 1000}});
  std::string fits(1000, 'x'), tooLong(1001, 'x');
  Client client = server.connect();
  EXPECT_EQ(client.ask(post("/echo", fits)).body, fits);
  // By its length alone, before it is sent.
  Client early = server.connect();
  expectError(early.ask("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: "
                        "1001\r\n\r\n"),
              413);
  EXPECT_TRUE(early.isClosed());
  // The answer arrives though much more is sent.
  Client large = server.connect();
  expectError(large.ask(post("/echo", std::string(4 << 20, 'x'))), 413);
  std::string head =
      "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  Client chunked = server.connect();
  EXPECT_EQ(chunked.ask(head + "3e8\r\n" + fits + "\r\n0\r\n\r\n").body, fits);
  expectError(chunked.ask(head + "3e8\r\n" + fits + "\r\n1\r\nx"), 413);
  Client extension = server.connect();
  expectError(extension.ask(head + "1;" + std::string(20000, 'x')), 400);
}

TEST(HttpLimits, TimeForHeaders) {
  TestServer server({.limits = {.headerTime = 200ms, .idleTime = 10s}});
  Client slow = server.connect(), silent = server.connect();
  std::string head = get("/hello", "X: " + std::string(1000, 'x') + "\r\n");
  auto began = Clock::now();
  bool isOpen = true;
  for (size_t i = 0; isOpen && i < head.size() && Clock::now() < began + 2s;
       ++i) {
    isOpen = slow.send({&head[i], 1});
    std::this_thread::sleep_for(10ms);
    if (Clock::now() > began + 400ms)
      break;
  }
  expectError(slow.receive(), 408);
  EXPECT_EQ(silent.receiveSome(), ""); // Closed, without an answer.
  EXPECT_LT(Clock::now() - began, 1s);
}

TEST(HttpLimits, TimeForBodies) {
  TestServer server({.limits = {.headerTime = 10s, .bodyTime = 200ms}});
  Client slow = server.connect();
  slow.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n");
  auto began = Clock::now();
  for (int i = 0; i < 30; ++i) {
    slow.send("x");
    std::this_thread::sleep_for(10ms);
  }
  expectError(slow.receive(), 408);
  EXPECT_LT(Clock::now() - began, 1s);
  EXPECT_EQ(server.gone(), 0u);
}

TEST(HttpLimits, IdleConnectionsAreClosed) {
  TestServer server({.limits = {.idleTime = 200ms}});
  Client client = server.connect();
  EXPECT_EQ(client.ask(get("/hello")).status, 200u);
  auto began = Clock::now();
  EXPECT_EQ(client.receiveSome(), "");
  EXPECT_GT(Clock::now() - began, 150ms);
  EXPECT_LT(Clock::now() - began, 1s);
}

TEST(HttpLimits, AnswersMayTakeAsLongAsTheyWant) {
  TestServer server({.limits = {.headerTime = 50ms,
                                .bodyTime = 50ms,
                                .idleTime = 50ms,
                                .writeTime = 50ms}});
  Client client = server.connect();
  client.send(post("/hold", "x"));
  auto held = server.held();
  std::this_thread::sleep_for(200ms);
  held->startStream("text/event-stream");
  held->write("a");
  std::this_thread::sleep_for(200ms);
  held->write("b");
  held->finish();
  EXPECT_EQ(client.receive().body, "ab");
  EXPECT_EQ(server.gone(), 0u);
}

/// A client that asks and then does not read.
static std::shared_ptr<http::Responder> hold(TestServer &server,
                                             Client &client) {
  client.send(get("/hold"));
  return server.held();
}

TEST(HttpLimits, AReaderThatDoesNotReadIsCutOff) {
  TestServer server({.limits = {.unsentBytes = 1 << 20}});
  Client client(server.port(), 4096);
  auto held = hold(server, client);
  held->startStream("text/event-stream");
  // The kernel takes some megabytes before anything waits here.
  for (int i = 0; i < 4000 && server.gone() == 0; ++i) {
    held->write(std::string(16 << 10, 'x'));
    if (i % 16 == 0)
      std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(server.waitForGone(1, 1s));
  EXPECT_TRUE(client.isClosed());
  ASSERT_TRUE(server.waitForLog(1));
  EXPECT_TRUE(server.log().front().ends_with("broken"));
}

TEST(HttpLimits, NoProgressForTooLongIsCutOff) {
  TestServer server({.limits = {.writeTime = 200ms}});
  Client client(server.port(), 4096);
  auto held = hold(server, client);
  held->reply({.body = std::string(32 << 20, 'x')});
  auto began = Clock::now();
  EXPECT_TRUE(server.waitForGone(1, 2s));
  EXPECT_GT(Clock::now() - began, 150ms);
}

TEST(HttpLimits, ASlowReaderGetsAll) {
  TestServer server({.limits = {.writeTime = 250ms, .unsentBytes = 1000}});
  Client client(server.port(), 4096);
  auto held = hold(server, client);
  std::string body(16 << 20, 'x');
  held->reply({.body = body});
  // Too slow for the kernel to take more within writeTime.
  for (int i = 0; i < 50; ++i) {
    EXPECT_NE(client.receiveSome(), "");
    std::this_thread::sleep_for(15ms);
  }
  EXPECT_EQ(server.gone(), 0u);
}

TEST(HttpLimits, Connections) {
  TestServer server({.limits = {.connections = 2}});
  Client one = server.connect();
  EXPECT_EQ(one.ask(get("/hello")).status, 200u);
  {
    Client two = server.connect();
    EXPECT_EQ(two.ask(get("/hello")).status, 200u);
    Client three = server.connect();
    // Also if it has asked before it is refused.
    expectError(three.ask(get("/hello")), 503);
    EXPECT_EQ(one.ask(get("/hello")).status, 200u);
  }
  // Those that left make room.
  u32 status = 0;
  for (int i = 0; i < 100 && status != 200; ++i) {
    status = server.connect().ask(get("/hello")).status;
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(status, 200u);
}

TEST(HttpLimits, CrowdsDoNotHoldDescriptors) {
  TestServer server({.limits = {.connections = 1}});
  std::vector<std::unique_ptr<Client>> crowd;
  for (int i = 0; i < 200; ++i)
    crowd.push_back(std::make_unique<Client>(server.port()));
  EXPECT_EQ(crowd.front()->ask(get("/hello")).status, 200u);
  u32 told = 0;
  for (size_t i = 1; i < crowd.size(); ++i)
    told += crowd[i]->receive().status == 503;
  // Some are closed without a word.
  EXPECT_GE(told, 60u);
  EXPECT_LE(told, 70u);
}

} // namespace lathe::tests

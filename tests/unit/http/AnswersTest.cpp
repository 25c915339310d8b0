// Answers from other threads, streams, and clients that leave.
#include "tests/unit/http/Errors.h"
#include "tests/unit/http/TestServer.h"

#include <future>
#include <gtest/gtest.h>
#include <thread>

namespace lathe::tests {

using namespace std::chrono_literals;

TEST(HttpAnswers, StreamsAreChunked) {
  TestServer server;
  Client client = server.connect();
  client.send(get("/hold"));
  auto held = server.held();
  held->startStream("text/event-stream");
  held->write("data: 1\n\n");
  held->write(""); // Would end a chunked body if it were framed.
  std::string first = client.receiveSome();
  // Head and first chunk may come apart.
  if (!first.ends_with("data: 1\n\n\r\n"))
    first += client.receiveSome();
  EXPECT_NE(first.find("text/event-stream"), first.npos);
  held->write("data: 2\n\n");
  std::string second = client.receiveSome();
  EXPECT_EQ(second.substr(second.size() - 14), "9\r\ndata: 2\n\n\r\n");
  held->finish();
  EXPECT_EQ(client.receiveSome(), "0\r\n\r\n");
  held->write("more");
  held->finish();
  EXPECT_EQ(client.ask(get("/hello")).body, "hello");
  ASSERT_TRUE(server.waitForLog(2));
  EXPECT_EQ(server.log().front(), "GET /hold 200 18 whole");
  EXPECT_EQ(server.gone(), 0u);
}

TEST(HttpAnswers, AnyThreadMayWrite) {
  TestServer server({.threads = 3});
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i)
    clients.emplace_back([&] {
      Client client = server.connect();
      for (int turn = 0; turn < 20; ++turn) {
        client.send(get("/hold"));
        auto held = server.held();
        std::thread writer([held] {
          held->startStream("text/plain");
          for (int part = 0; part < 50; ++part)
            held->write("0123456789");
          held->finish();
        });
        Answer answer = client.receive();
        writer.join();
        EXPECT_EQ(answer.body.size(), 500u);
        EXPECT_TRUE(answer.hasEnd);
      }
    });
  for (std::thread &thread : clients)
    thread.join();
}

TEST(HttpAnswers, HandlersThatFailGive500) {
  TestServer server;
  Client client = server.connect();
  for (const char *path : {"/throws", "/forgets"}) {
    Answer answer = client.ask(get(path));
    expectError(answer, 500);
    EXPECT_EQ(answer.body.find("secret"), answer.body.npos);
  }
  client.send(get("/hold"));
  server.held().reset();
  expectError(client.receive(), 500);
  EXPECT_EQ(server.gone(), 0u);
}

TEST(HttpAnswers, AStreamThatBreaksOffIsSeenToLackItsEnd) {
  TestServer server;
  Client client = server.connect();
  client.send(get("/hold"));
  auto held = server.held();
  held->startStream("text/plain");
  held->write("part");
  held.reset();
  Answer answer = client.receive();
  EXPECT_EQ(answer.body, "part");
  EXPECT_FALSE(answer.hasEnd);
  EXPECT_TRUE(client.isClosed());
  ASSERT_TRUE(server.waitForLog(1));
  EXPECT_EQ(server.log().front(), "GET /hold 200 4 broken");
}

TEST(HttpAnswers, HeadersOfAnAnswerCannotBeForged) {
  TestServer server;
  Client client = server.connect();
  client.send(get("/hold"));
  server.held()->reply({.status = 204, .headers = {{"X", "a\r\nY: b"}}});
  Answer answer = client.receive();
  EXPECT_EQ(answer.status, 204u);
  EXPECT_EQ(answer.header("x"), "a  Y: b");
  EXPECT_EQ(answer.header("y"), "");
  EXPECT_EQ(answer.header("content-length"), "");
}

/// Every way to leave, before the answer begins and in the middle of it.
TEST(HttpAnswers, LeavingIsNoticedAtOnce) {
  TestServer server;
  u32 gone = 0;
  for (bool isStreaming : {false, true})
    for (int way = 0; way < 4; ++way) {
      Client client = server.connect();
      client.send(get("/hold"));
      if (way == 3) // With more sent ahead than is kept.
        client.send(post("/echo", std::string(100000, 'x')));
      auto held = server.held();
      ASSERT_TRUE(held);
      if (isStreaming) {
        held->startStream("text/plain");
        held->write("some");
        if (way != 3)
          client.receiveSome();
      }
      if (way == 3) // Until it is read up to the bound.
        std::this_thread::sleep_for(50ms);
      EXPECT_EQ(server.gone(), gone);
      if (way == 0)
        client.close();
      else if (way == 1)
        client.reset();
      else
        client.shutdownSending(); // Counts as leaving, too.
      EXPECT_TRUE(server.waitForGone(++gone, 100ms)) << way << isStreaming;
      held->write("dropped");
      held->finish();
    }
  EXPECT_EQ(server.connect().ask(get("/hello")).status, 200u);
}

TEST(HttpAnswers, WhatIsGivenAlreadyIsSentToAHalfClosedClient) {
  TestServer server;
  Client client = server.connect();
  client.send(get("/hello") + get("/id") + get("/hello"));
  client.shutdownSending();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(client.receive().status, 200u);
  EXPECT_TRUE(client.isClosed());
}

TEST(HttpAnswers, LeavingBeforeTheHandlerAsks) {
  std::promise<std::shared_ptr<http::Responder>> handed;
  auto server = http::HttpServer::listen({}).value();
  server->serve(testRoutes([&](const http::Request &, auto to) {
    handed.set_value(std::move(to));
  }));
  Client client(server->port());
  client.send(get("/hold"));
  auto held = handed.get_future().get();
  client.close();
  std::this_thread::sleep_for(50ms);
  u32 gone = 0;
  held->onGone([&] { ++gone; });
  EXPECT_EQ(gone, 1u);
}

TEST(HttpAnswers, ACallbackIsDroppedWithTheAnswer) {
  std::promise<std::shared_ptr<http::Responder>> handed;
  auto server = http::HttpServer::listen({}).value();
  server->serve(testRoutes([&](const http::Request &, auto to) {
    handed.set_value(std::move(to));
  }));
  Client client(server->port());
  client.send(get("/hold"));
  auto held = handed.get_future().get();
  auto kept = std::make_shared<int>(0);
  std::weak_ptr<int> seen = kept;
  // Even if it refers to its own responder.
  held->onGone([kept, held] {});
  kept.reset();
  held->reply({.body = "x"});
  EXPECT_EQ(client.receive().body, "x");
  std::weak_ptr<http::Responder> responder = held;
  held.reset();
  for (int i = 0; i < 100 && !responder.expired(); ++i)
    std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(responder.expired());
  EXPECT_TRUE(seen.expired());
}

} // namespace lathe::tests

// How a server begins and ends.
#include "tests/unit/http/TestServer.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

namespace lathe::tests {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

static size_t entries(const char *directory) {
  size_t count = 0;
  for ([[maybe_unused]] const auto &entry :
       std::filesystem::directory_iterator(directory))
    ++count;
  return count;
}

TEST(HttpEnd, DrainingFinishesWhatIsBeingAnswered) {
  TestServer server;
  Client idle = server.connect(), fresh = server.connect(),
         whole = server.connect(), stream = server.connect(),
         sending = server.connect();
  EXPECT_EQ(idle.ask(get("/hello")).status, 200u);
  whole.send(get("/hold"));
  auto first = server.held();
  stream.send(get("/hold"));
  auto second = server.held();
  second->startStream("text/plain");
  stream.receiveSome();
  sending.send("GET /hel");
  std::this_thread::sleep_for(20ms);

  EXPECT_FALSE(server.server->drain(10ms));
  EXPECT_TRUE(idle.isClosed(500ms));
  EXPECT_TRUE(fresh.isClosed(500ms));
  EXPECT_FALSE(server.connect().isConnected());
  first->reply({.body = "first"});
  Answer answer = whole.receive();
  EXPECT_EQ(answer.body, "first");
  EXPECT_EQ(answer.header("connection"), "close");
  EXPECT_TRUE(whole.isClosed(500ms));
  second->write("last");
  second->finish();
  EXPECT_TRUE(stream.receiveSome().starts_with("4\r\nlast\r\n"));
  answer = sending.ask("lo HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.header("connection"), "close");
  EXPECT_TRUE(server.server->drain(2s));
  EXPECT_EQ(server.gone(), 0u);
}

TEST(HttpEnd, DestructionClosesAllAndFreesEverything) {
  {
    TestServer warmUp;
  }
  size_t files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  for (int turn = 0; turn < 5; ++turn) {
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<std::shared_ptr<http::Responder>> left;
    auto server = std::make_unique<TestServer>(http::HttpOptions{.threads = 2});
    for (int i = 0; i < 20; ++i)
      clients.push_back(std::make_unique<Client>(server->port()));
    for (int i = 0; i < 5; ++i)
      clients[i]->ask(get("/hello"));
    for (int i = 5; i < 10; ++i) {
      clients[i]->send(get("/hold"));
      left.push_back(server->held());
      left.back()->startStream("text/plain");
    }
    clients[10]->send("GET /");
    auto began = Clock::now();
    server->server.reset();
    EXPECT_LT(Clock::now() - began, 500ms);
    EXPECT_EQ(server->gone(), 5u);
    for (auto &client : clients)
      EXPECT_TRUE(client->isClosed(500ms));
    // A responder may outlive its server.
    left.back()->write("dropped");
    u32 gone = 0;
    left.back()->onGone([&] { ++gone; });
    EXPECT_EQ(gone, 1u);
  }
  EXPECT_EQ(entries("/proc/self/fd"), files);
  EXPECT_EQ(entries("/proc/self/task"), threads);
}

TEST(HttpEnd, ConnectionsLeaveNothingBehind) {
  TestServer server;
  server.connect().ask(get("/hello"));
  size_t files = entries("/proc/self/fd");
  for (int i = 0; i < 200; ++i) {
    Client client = server.connect();
    if (i % 4 == 0)
      client.ask(get("/hello"));
    else if (i % 4 == 1)
      client.ask("nonsense\r\n\r\n");
    else if (i % 4 == 2)
      client.send("GET /");
    if (i % 3 == 0)
      client.reset();
  }
  for (int i = 0; i < 100 && entries("/proc/self/fd") > files; ++i)
    std::this_thread::sleep_for(5ms);
  EXPECT_LE(entries("/proc/self/fd"), files);
}

TEST(HttpEnd, WritersRaceWithTheEnd) {
  for (int turn = 0; turn < 30; ++turn) {
    auto server = std::make_unique<TestServer>();
    Client client = server->connect();
    client.send(get("/hold"));
    auto held = server->held();
    std::thread writer([held = std::move(held)] {
      held->startStream("text/plain");
      for (int i = 0; i < 200; ++i)
        held->write("x");
    });
    server->server.reset();
    writer.join();
  }
}

TEST(HttpEnd, NeverServed) {
  auto server = http::HttpServer::listen({}).value();
  EXPECT_NE(server->port(), 0);
  EXPECT_TRUE(server->drain(100ms));
}

TEST(HttpListen, APortInUseIsToldWithWhatToDo) {
  auto first = http::HttpServer::listen({}).value();
  auto second = http::HttpServer::listen({.port = first->port()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, runtime::ErrorKind::Environment);
  for (const std::string &part : {fmt::format("127.0.0.1:{}", first->port()),
                                  std::string("in use"), std::string("--port")})
    EXPECT_NE(second.error().message.find(part), std::string::npos)
        << second.error().message;
}

TEST(HttpListen, APortIsFreeAgainAtOnce) {
  u16 port = 0;
  for (int i = 0; i < 3; ++i) {
    auto server = http::HttpServer::listen({.port = port}).value();
    server->serve(testRoutes(nullptr));
    port = server->port();
    Client client(port);
    EXPECT_EQ(client.ask(get("/hello")).status, 200u);
    server.reset();
    EXPECT_TRUE(client.isClosed());
  }
}

TEST(HttpListen, Hosts) {
  auto name = http::HttpServer::listen({.host = "localhost"});
  ASSERT_TRUE(name) << name.error().message;
  EXPECT_EQ((*name)->url(),
            fmt::format("http://localhost:{}", (*name)->port()));
  for (const char *host : {"::1", "[::1]"}) {
    auto server = http::HttpServer::listen({.host = host});
    if (!server &&
        server.error().message.find("does not have") != std::string::npos)
      GTEST_SKIP() << "no IPv6 here";
    ASSERT_TRUE(server) << server.error().message;
    EXPECT_EQ((*server)->url(),
              fmt::format("http://[::1]:{}", (*server)->port()));
  }
}

TEST(HttpListen, HostsThatCannotBe) {
  for (const char *host : {"", "no such host", "host.invalid", "192.0.2.1",
                           "127.0.0.1.1", "[", "::g"}) {
    auto server = http::HttpServer::listen({.host = host});
    ASSERT_FALSE(server) << host;
    EXPECT_EQ(server.error().kind, runtime::ErrorKind::Environment);
    EXPECT_NE(server.error().message.find("--host"), std::string::npos)
        << server.error().message;
  }
}

TEST(HttpListen, PortsOfTheSystem) {
  if (::geteuid() == 0)
    GTEST_SKIP() << "root may take them";
  auto server = http::HttpServer::listen({.port = 1});
  if (server)
    GTEST_SKIP() << "everybody may take them here";
  EXPECT_NE(server.error().message.find("below 1024"), std::string::npos);
}

} // namespace lathe::tests

// What requests look like on the wire, and what the server makes of them.
#include "tests/unit/http/Errors.h"
#include "tests/unit/http/TestServer.h"

#include <gtest/gtest.h>
#include <thread>

namespace lathe::tests {

TEST(HttpRequests, KeepAliveAnswersOneAfterTheOther) {
  TestServer server;
  Client client = server.connect();
  for (int i = 0; i < 3; ++i) {
    Answer answer = client.ask(get("/hello"));
    EXPECT_EQ(answer.status, 200u);
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.header("content-type"), "text/plain");
    EXPECT_EQ(answer.header("server"), "lathe");
    EXPECT_EQ(answer.header("connection"), "");
  }
  ASSERT_TRUE(server.waitForLog(3));
  EXPECT_EQ(server.log().front(), "GET /hello 200 5 whole");
}

TEST(HttpRequests, ConnectionCloseCloses) {
  TestServer server;
  Client client = server.connect();
  Answer answer = client.ask(get("/hello", "Connection: close\r\n"));
  EXPECT_EQ(answer.header("connection"), "close");
  EXPECT_TRUE(client.isClosed());
}

TEST(HttpRequests, PipelinedRequestsAreAnsweredInOrder) {
  TestServer server;
  Client client = server.connect();
  client.send(post("/echo", "one") + get("/hold") + post("/echo", "two") +
              get("/hello"));
  EXPECT_EQ(client.receive().body, "one");
  server.held()->reply({.body = "held"});
  EXPECT_EQ(client.receive().body, "held");
  EXPECT_EQ(client.receive().body, "two");
  EXPECT_EQ(client.receive().body, "hello");
  EXPECT_EQ(server.gone(), 0u);
}

TEST(HttpRequests, MuchThatIsSentAheadWaits) {
  TestServer server;
  Client client = server.connect();
  std::string big(300000, 'x');
  // More than what is read ahead; the kernel's buffers hold the rest.
  client.send(get("/hold") + post("/echo", big) + get("/hello"));
  auto held = server.held();
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  EXPECT_EQ(server.gone(), 0u);
  held->reply({.body = "held"});
  EXPECT_EQ(client.receive().body, "held");
  EXPECT_EQ(client.receive().body, big);
  EXPECT_EQ(client.receive().body, "hello");
}

TEST(HttpRequests, BytesMayComeOneByOne) {
  TestServer server;
  Client client = server.connect();
  std::string request =
      "\r\nPOST /echo?a=b HTTP/1.1\r\nhost: h\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3;name=value\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: "
      "ignored\r\n\r\n";
  for (char c : request)
    ASSERT_TRUE(client.send({&c, 1}));
  Answer answer = client.receive();
  EXPECT_EQ(answer.body, "abcde");
  EXPECT_EQ(answer.header("x-query"), "a=b");
  // The shortest last chunk, too.
  for (char c :
       std::string("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding"
                   ": Chunked\r\n\r\n0\r\n\r\n"))
    ASSERT_TRUE(client.send({&c, 1}));
  answer = client.receive();
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.body, "");
}

TEST(HttpRequests, HeadGetsTheHeadersOfGet) {
  TestServer server;
  Client client = server.connect();
  Answer answer = client.ask("HEAD /hello HTTP/1.1\r\nHost: h\r\n\r\n", true);
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.header("content-length"), "5");
  // No body went in between.
  EXPECT_EQ(client.ask(get("/hello")).body, "hello");
  answer = client.ask("HEAD /nowhere HTTP/1.1\r\nHost: h\r\n\r\n", true);
  EXPECT_EQ(answer.status, 404u);
  EXPECT_EQ(client.ask(get("/hello")).body, "hello");
}

TEST(HttpRequests, UnknownPathsAndMethods) {
  TestServer server;
  Client client = server.connect();
  expectError(client.ask(get("/nowhere")), 404);
  expectError(client.ask(get("/hello/")), 404);
  expectError(client.ask(get("*")), 404);
  Answer answer = client.ask("DELETE /hello HTTP/1.1\r\nHost: h\r\n\r\n");
  expectError(answer, 405);
  EXPECT_EQ(answer.header("allow"), "GET, HEAD");
  answer = client.ask("OPTIONS /hold HTTP/1.1\r\nHost: h\r\nOrigin: "
                      "http://evil.example\r\n\r\n");
  expectError(answer, 405);
  EXPECT_EQ(answer.header("allow"), "GET, HEAD, POST");
  EXPECT_EQ(answer.header("access-control-allow-origin"), "");
  expectError(client.ask("get /hello HTTP/1.1\r\nHost: h\r\n\r\n"), 405);
  // Refused before its body is read: the connection ends, the answer arrives.
  answer = client.ask(post("/nowhere", std::string(100000, 'x')));
  expectError(answer, 404);
  EXPECT_EQ(answer.header("connection"), "close");
}

TEST(HttpRequests, Targets) {
  TestServer server;
  Client client = server.connect();
  for (const char *target :
       {"/hello", "/hello?", "/hello?a=/#x", "/%68ello", "/h%65llo?q=%",
        "http://any.example:80/hello", "HTTP://any.example/hello?x"}) {
    bool hasFragment = std::string_view(target).find('#') != std::string::npos;
    Client fresh = server.connect();
    EXPECT_EQ(fresh.ask(get(target)).status, hasFragment ? 400u : 200u)
        << target;
  }
  for (const char *target :
       {"/%", "/%4", "/%zz", "/%00", "/%2fhello", "/hello%0a", "/%ff", "hello",
        "http:///hello", "ftp://h/hello", "/hello#x", "http://h#x", "**"}) {
    Client fresh = server.connect();
    expectError(fresh.ask(get(target)), 400);
    EXPECT_TRUE(fresh.isClosed()) << target;
  }
  expectError(client.ask(get("http://any.example")), 404);
  expectError(client.ask(get("/./hello")), 404);
  expectError(client.ask(get("/x/../hello")), 404);
  Client last = server.connect();
  expectError(last.ask("CONNECT host:80 HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
}

TEST(HttpRequests, MalformedOnesAreRefused) {
  TestServer server;
  using namespace std::string_literals;
  const std::pair<std::string, u32> cases[] = {
      {"nonsense\r\n\r\n", 400},
      {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s, 400}, // TLS
      {"GET /hello HTTP/2.0\r\nHost: h\r\n\r\n", 400},
      {"GET  /hello HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /hello HTTP/1.1\nHost: h\n\n", 400},
      {"GET /hello HTTP/1.1\r\n\r\n", 400},
      {"GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET /hello HTTP/1.1\r\nHost : h\r\n\r\n", 400},
      {"GET /hello HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n"s, 400},
      {"GET /hello HTTP/1.1\r\nHost: h\r\nX: a\x01\x62\r\n\r\n", 400},
      {"GET /hello HTTP/1.1\r\nHost: h\r\nX: a\x7f\r\n\r\n", 400},
      {"GET /hello HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n", 400},
      {"GET /hello HTTP/1.1\r\nHost: h\r\nX\0: a\r\n\r\n"s, 400},
      {"GET /he\0llo HTTP/1.1\r\nHost: h\r\n\r\n"s, 400},
      {"GET /hello HTTP/1.1\r\nHost: h\r\nExpect: more\r\n\r\n", 417},
      {"GET /hello HTTP/1.1\r\nHost: h\r\nAuthorization: a\r\nAuthorization: "
       "b\r\n\r\n",
       400},
  };
  for (const auto &[bytes, status] : cases) {
    Client client = server.connect();
    expectError(client.ask(bytes), status);
    EXPECT_TRUE(client.isClosed()) << bytes;
  }
}

TEST(HttpRequests, WhereABodyEndsIsNeverInDoubt) {
  TestServer server;
  const std::pair<const char *, u32> cases[] = {
      {"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", 400},
      {"Content-Length: 3\r\nContent-Length: 3\r\n", 400},
      {"Content-Length: 3\r\nContent-Length: 4\r\n", 400},
      {"Content-Length: 3, 3\r\n", 400},
      {"Content-Length: +3\r\n", 400},
      {"Content-Length: -3\r\n", 400},
      {"Content-Length: 0x3\r\n", 400},
      {"Content-Length: \r\n", 400},
      {"Content-Length: 99999999999999999999\r\n", 400},
      {"Transfer-Encoding: gzip, chunked\r\n", 501},
      {"Transfer-Encoding: chunked, gzip\r\n", 501},
      {"Transfer-Encoding: xchunked\r\n", 501},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
  };
  for (const auto &[headers, status] : cases) {
    Client client = server.connect();
    expectError(client.ask(std::string("POST /echo HTTP/1.1\r\nHost: h\r\n") +
                           headers + "\r\n3\r\nabc\r\n0\r\n\r\n"),
                status);
    EXPECT_TRUE(client.isClosed()) << headers;
  }
  for (const char *chunks :
       {"x\r\n", "3\r\nabcd\r\n", "3\nabc\n", "-1\r\n", "\r\n",
        "fffffffffffffffff\r\n", "0\r\nContent-Length: 3\r\n\r\n"}) {
    Client client = server.connect();
    expectError(client.ask(std::string("POST /echo HTTP/1.1\r\nHost: h\r\n"
                                       "Transfer-Encoding: chunked\r\n\r\n") +
                           chunks + "\r\n\r\n"),
                400);
    EXPECT_TRUE(client.isClosed()) << chunks;
  }
}

TEST(HttpRequests, OldVersionOfTheProtocol) {
  TestServer server;
  Client client = server.connect();
  Answer answer = client.ask("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_EQ(answer.body, "hello");
  EXPECT_TRUE(client.isClosed());
  Client keeping = server.connect();
  for (int i = 0; i < 2; ++i) {
    answer =
        keeping.ask("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(answer.header("connection"), "keep-alive");
  }
  // A stream cannot be chunked: it ends with the connection.
  keeping.send("GET /hold HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  auto held = server.held();
  held->startStream("text/event-stream");
  held->write("a");
  held->write("b");
  held->finish();
  answer = keeping.receive();
  EXPECT_EQ(answer.header("transfer-encoding"), "");
  EXPECT_EQ(answer.body, "ab");
}

TEST(HttpRequests, ContinueIsSaidWhenTheBodyIsWanted) {
  TestServer server({.limits = {.bodyBytes = 1000}});
  Client client = server.connect();
  std::string head =
      "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
      "Content-Length: ";
  EXPECT_EQ(client.ask(head + "3\r\n\r\n").status, 100u);
  EXPECT_EQ(client.ask("abc").body, "abc");
  // Not needed if the body has come already.
  EXPECT_EQ(client.ask(head + "3\r\n\r\nabc").body, "abc");
  expectError(client.ask(head + "1001\r\n\r\n"), 413);
  EXPECT_TRUE(client.isClosed());
}

TEST(HttpRequests, Ids) {
  TestServer server;
  Client client = server.connect();
  Answer answer = client.ask(get("/id", "X-Request-ID: my-Id.1_\r\n"));
  EXPECT_EQ(answer.body, "my-Id.1_");
  EXPECT_EQ(answer.header("x-request-id"), "my-Id.1_");
  std::string longest(64, 'a');
  EXPECT_EQ(client.ask(get("/id", "x-request-id: " + longest + "\r\n")).body,
            longest);
  std::string before;
  for (const std::string &bad :
       {std::string(65, 'a'), std::string("a b"), std::string("\"x\""),
        std::string("\xc3\xa4"), std::string()}) {
    std::string id =
        client.ask(get("/id", "x-request-id: " + bad + "\r\n")).body;
    EXPECT_EQ(id.size(), 32u) << bad;
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), id.npos);
    EXPECT_NE(id, before);
    before = id;
  }
  answer = client.ask(get("/nowhere", "x-request-id: mine\r\n"));
  EXPECT_EQ(answer.header("x-request-id"), "mine");
}

TEST(HttpRequests, BodiesAreTakenAsTheyAre) {
  TestServer server;
  Client client = server.connect();
  std::string all;
  for (int i = 0; i < 1 << 20; ++i)
    all += char(i);
  EXPECT_EQ(client.ask(post("/echo", all)).body, all);
}

} // namespace lathe::tests

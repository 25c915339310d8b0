// Requests with random faults: the server survives them all.
#include "tests/unit/http/TestServer.h"

#include <gtest/gtest.h>
#include <random>

namespace lathe::tests {

static std::string mutated(std::string bytes, std::mt19937 &random) {
  static const std::string pieces[] = {
      "\r\n",  "\r",        "\n",   std::string(1, '\0'),
      ":",     " ",         "0",    "ffffffffffffffff",
      "%",     "chunked",   "\xff", "Content-Length: 5\r\n",
      "HTTP/", "\r\n\r\n",  "-1",   "Transfer-Encoding: chunked\r\n",
      "?",     "http://x/", ";a=b", "Expect: 100-continue\r\n"};
  u32 faults = 1 + random() % 4;
  for (u32 i = 0; i < faults && !bytes.empty(); ++i) {
    size_t at = random() % bytes.size();
    switch (random() % 5) {
    case 0:
      bytes[at] = char(random());
      break;
    case 1:
      bytes.erase(at, 1 + random() % 8);
      break;
    case 2:
      bytes.insert(at, pieces[random() % std::size(pieces)]);
      break;
    case 3:
      bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40));
      break;
    case 4:
      bytes.resize(at);
      break;
    }
  }
  return bytes;
}

TEST(HttpMutations, TheServerSurvives) {
  TestServer server({.limits = {.bodyBytes = 4096,
                                .headerBytes = 1024,
                                .headerTime = std::chrono::milliseconds(50),
                                .bodyTime = std::chrono::milliseconds(50)}});
  const std::string seeds[] = {
      get("/hello", "Connection: keep-alive\r\nAccept: */*\r\n"),
      post("/echo?a=b", R"({"prompt":"x"})", "Content-Type: text/plain\r\n"),
      "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;a=b\r\nhello\r\n3\r\nabc\r\n0\r\nTrailer: x\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
      "Content-Length: 3\r\n\r\nabc",
      "HEAD http://h/hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
      get("/throws") + get("/forgets") + get("/nowhere")};
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = mutated(seeds[random() % std::size(seeds)], random);
    Client client = server.connect();
    // Sometimes in two parts, sometimes with an orderly end.
    size_t cut = random() % 2 ? random() % (bytes.size() + 1) : bytes.size();
    client.send(bytes.substr(0, cut));
    client.send(bytes.substr(cut));
    u32 end = random() % 8;
    if (end == 0)
      client.reset();
    else if (end < 4)
      client.shutdownSending();
    if (end < 4 && end != 0)
      ASSERT_TRUE(client.isClosed()) << testing::PrintToString(bytes);
  }
  Client client = server.connect();
  EXPECT_EQ(client.ask(get("/hello")).body, "hello");
  EXPECT_EQ(client.ask(post("/echo", "still")).body, "still");
}

} // namespace lathe::tests

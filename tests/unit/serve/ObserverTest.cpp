// What observers hear of requests.

#include "tests/unit/serve/ServeFixture.h"

#include <cmath>
#include <mutex>

using namespace lathe;
using namespace lathe::tests;
using namespace lathe::runtime;
using testing::ElementsAre;

namespace {

/// Writes down what it hears.
struct Diary : serve::Observer, std::enable_shared_from_this<Diary> {
  struct Page : serve::RequestObserver {
    explicit Page(std::shared_ptr<Diary> diary) : diary(std::move(diary)) {}
    void onToken(u32 branch, i32 token, Instant) override {
      diary->write(fmt::format("{}: token {}", branch, token));
    }
    void onText(u32 branch, std::string_view text) override {
      diary->write(fmt::format("{}: text {}", branch, text));
    }
    void onEnd(u32 branch, const End &end, const RequestFacts &facts) override {
      diary->write(fmt::format("{}: end {} of {}", branch, int(end.reason),
                               facts.promptTokens));
    }
    std::shared_ptr<Diary> diary;
  };

  std::shared_ptr<serve::RequestObserver>
  onRequest(const serve::ObservedRequest &request) override {
    write(fmt::format("{} {} {} {} {} {}", request.callId, request.endpoint,
                      request.promptIndex, request.isStream, request.promptText,
                      request.request.sampling.seed));
    return std::make_shared<Page>(shared_from_this());
  }
  void onError(std::string_view callId, std::string_view, u32 status,
               std::string_view) override {
    write(fmt::format("{} error {}", callId, status));
  }

  void write(std::string line) {
    std::lock_guard lock(mutex);
    lines.push_back(std::move(line));
  }
  std::vector<std::string> take() {
    std::lock_guard lock(mutex);
    return std::exchange(lines, {});
  }

  std::mutex mutex;
  std::vector<std::string> lines;
};

class ObserverTest : public ServeTest {
protected:
  void SetUp() override {
    serve({.tokenizer = chainTokenizer(),
           .followers = {{"x", {{"a", 0}}},
                         {"a", {{"b", 0}}},
                         {"b", {{"c", 0}}},
                         {"c", {{"y", NAN}}}}});
    server->model()->observer = diary;
  }

  std::shared_ptr<Diary> diary = std::make_shared<Diary>();
};

constexpr int stop = int(EndReason::Stop), length = int(EndReason::Length);

TEST_F(ObserverTest, HearsOfEveryToken) {
  complete({{"prompt", "x"}, {"max_tokens", 2}, {"seed", 5}, {"echo", true}});
  EXPECT_THAT(diary->take(),
              ElementsAre("r1 /v1/completions 0 false x 5", "0: token 97",
                          "0: text a", "0: token 98", "0: text b",
                          fmt::format("0: end {} of 2", length)));
}

TEST_F(ObserverTest, HearsTheTextThatClientsGet) {
  complete({{"prompt", "x"}, {"stop", "bc"}, {"seed", 5}, {"stream", true}});
  EXPECT_THAT(diary->take(),
              ElementsAre("r1 /v1/completions 0 true x 5", "0: token 97",
                          "0: text a", "0: token 98", "0: token 99",
                          fmt::format("0: end {} of 2", stop)));
  complete({{"prompt", "x"}, {"stop", "bz"}, {"seed", 5}, {"max_tokens", 2}});
  EXPECT_THAT(diary->take(),
              ElementsAre("r1 /v1/completions 0 false x 5", "0: token 97",
                          "0: text a", "0: token 98", "0: text b",
                          fmt::format("0: end {} of 2", length)));
}

TEST_F(ObserverTest, HearsOfErrors) {
  complete({{"prompt", "x"}, {"temperature", "hot"}});
  EXPECT_THAT(diary->take(), ElementsAre("r1 error 400"));
  callRaw(routes, "POST", "/api/chat", "{");
  EXPECT_THAT(diary->take(), ElementsAre("r1 error 400"));
  complete({{"prompt", std::string(300, 'x')}});
  auto lines = diary->take();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1], "r1 error 400");
  complete({{"prompt", {"c", "c"}}});
  lines = diary->take();
  EXPECT_EQ(std::ranges::count(lines, "r1 error 500"), 1);
}

} // namespace

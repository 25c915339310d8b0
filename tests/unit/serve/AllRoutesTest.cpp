// Who is let in, of all that lathe serve answers.
#include "runtime/serve/AllRoutes.h"
#include "runtime/serve/http/Admission.h"
#include "tests/unit/serve/ServeFixture.h"

namespace lathe::tests {

namespace http = runtime::http;

class AllRoutesTest : public ServeTest {
protected:
  AllRoutesTest() {
    serveChain();
    auto metrics = std::make_shared<runtime::serve::Metrics>(
        "chain", [] { return runtime::ServingStats(); });
    state.routes = runtime::serve::allRoutes(server->model(), metrics);
  }

  http::Admission ask(const http::Route &route,
                      std::vector<http::Header> headers) const {
    headers.emplace_back("Host", "h:80");
    return http::admit(state, {.method = route.method,
                               .path = route.path,
                               .query = {},
                               .headers = std::move(headers)});
  }

  http::ServerState state{{.keys = {"key"}}};
};

TEST_F(AllRoutesTest, AllButLivezNeedAKey) {
  ASSERT_GT(state.routes.all().size(), 15u);
  std::vector<std::string> open;
  for (const http::Route &route : state.routes.all()) {
    SCOPED_TRACE(route.method + " " + route.path);
    http::Admission stranger = ask(route, {});
    if (stranger.route) {
      open.push_back(route.path);
      continue;
    }
    ASSERT_TRUE(stranger.refusal);
    EXPECT_EQ(stranger.refusal->status, 401u);
    // Just the page makes a browser ask for a key.
    const char *challenge = route.path == "/"
                                ? R"(Basic realm="lathe", charset="UTF-8")"
                                : "Bearer";
    EXPECT_THAT(stranger.refusal->headers, testing::ElementsAre(testing::Pair(
                                               "WWW-Authenticate", challenge)));
    http::Admission wrong = ask(route, {{"Authorization", "Bearer other"}});
    ASSERT_TRUE(wrong.refusal);
    EXPECT_EQ(wrong.refusal->status, 401u);
    // base64 of ":key"
    http::Header basic = {"Authorization", "Basic OmtleQ=="};
    EXPECT_EQ(ask(route, {{"Authorization", "Bearer key"}}).route, &route);
    EXPECT_EQ(ask(route, {basic}).route, &route);
    http::Admission foreign = ask(route, {basic, {"Origin", "http://other"}});
    ASSERT_TRUE(foreign.refusal);
    EXPECT_EQ(foreign.refusal->status, 403u);
  }
  EXPECT_THAT(open, testing::ElementsAre("/livez"));
}

} // namespace lathe::tests

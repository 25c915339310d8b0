/// \file
/// A chain model with its routes, for tests of the API.
#ifndef LATHE_TESTS_UNIT_SERVE_SERVEFIXTURE_H
#define LATHE_TESTS_UNIT_SERVE_SERVEFIXTURE_H

#include "tests/unit/serve/ChainModel.h"
#include "tests/unit/serve/FakeClient.h"
#include "tests/unit/support/TempDir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lathe::tests {

class ServeTest : public testing::Test {
protected:
  /// Serves a model; a begin of "x" answers "DEF", "G", "HI", "J", "!" and
  /// ends unless told otherwise.
  void serve(ChainSpec spec) {
    server = std::make_unique<ChainServer>(spec, dir.path("."));
    routes = {};
    runtime::serve::addApiRoutes(routes, server->model());
  }
  /// The same with a chain of the same tokens as its draft model, which always
  /// drafts.
  void serveWithDrafts(ChainSpec spec, std::map<std::string, Followers> drafts,
                       u32 mostTokens = 4) {
    ChainSpec draft = {.tokenizer = spec.tokenizer,
                       .followers = std::move(drafts)};
    spec.options.drafts = {
        .model = loadChain(draft, dir.path("draft.lathe")),
        .speculation = {.mostTokens = mostTokens, .adapts = false}};
    serve(std::move(spec));
  }
  void serveChain() {
    serve(
        {.tokenizer = chainTokenizer(),
         .followers = chain({"x", "DEF", "G", "HI", "J", "!", "<|im_end|>"})});
  }

  Answer complete(json body) { return call(routes, "/v1/completions", body); }
  Answer chat(json body) { return call(routes, "/v1/chat/completions", body); }

  TempDir dir;
  std::unique_ptr<ChainServer> server;
  runtime::http::Routes routes;
};

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_SERVE_SERVEFIXTURE_H

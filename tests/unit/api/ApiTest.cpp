#include "tests/unit/engine/TinyEngine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lathe/lathe.h>

using namespace lathe::tests;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// The engine of the tests, whose code likes token 0 best, with a vocabulary of
/// letters: 0 = a … 11 = l, 12 = space, 13 = <s>, 14 = </s>, 15 = <|end|>.
class ApiTest : public testing::Test {
protected:
  static lathe::codegen::EngineDescription description() {
    using lathe::runtime::TokenType;
    auto engine = tinyDescription();
    lathe::runtime::TokenizerSpec spec;
    spec.preTokenizer = "gpt-2";
    for (char letter = 'a'; letter <= 'l'; ++letter)
      spec.tokens.push_back(std::string(1, letter));
    spec.tokens.push_back("\xc4\xa0"); // a space in GPT-2's byte alphabet
    spec.types.assign(13, TokenType::Normal);
    for (const char *special : {"<s>", "</s>", "<|end|>"}) {
      spec.tokens.push_back(special);
      spec.types.push_back(TokenType::Control);
    }
    spec.bosId = 13;
    spec.eosId = 14;
    spec.endIds = {14};
    spec.addBos = true;
    spec.chatTemplate = "{{ bos_token }}{% for m in messages %}"
                        "{{ m.content }}<|end|>{% endfor %}";
    engine.tokenizer = spec;
    return engine;
  }

  lathe::Result<lathe::Model>
  open(const lathe::codegen::EngineDescription &engine = description()) {
    std::string path = dir.path("tiny.lathe");
    EXPECT_TRUE(lathe::codegen::writeEngine(path, engine).has_value());
    return lathe::Model::open(path, {/*trustCode=*/true, "generic"});
  }

  TempDir dir;
};

TEST_F(ApiTest, ModelSaysWhatItIs) {
  auto model = open();
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->name(), "tiny");
  EXPECT_EQ(model->architecture(), "llama");
  EXPECT_EQ(model->target(), "cpu:generic");
  EXPECT_EQ(model->context(), 64u);
  EXPECT_EQ(model->vocabularySize(), 16u);
  EXPECT_STREQ(lathe::version(), "0.1.0");
}

TEST_F(ApiTest, TokenizesBothWays) {
  auto model = open();
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_THAT(*model->tokenize("bad"), ElementsAre(1, 0, 3));
  EXPECT_THAT(*model->tokenize("bad", true), ElementsAre(13, 1, 0, 3));
  EXPECT_EQ(model->detokenize({13, 1, 0, 3, 14}), "bad");
  // The template's markers are control tokens, what people type is not.
  auto ids = model->tokenizeChat({{"user", "ab"}, {"user", "c"}});
  ASSERT_TRUE(ids) << ids.error().message;
  EXPECT_THAT(*ids, ElementsAre(13, 0, 1, 15, 2, 15));
}

TEST_F(ApiTest, SessionAnswers) {
  auto model = open();
  ASSERT_TRUE(model) << model.error().message;
  auto session = lathe::Session::create(*model, {/*threads=*/2, 40, 0});
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_EQ(session->context(), 40u);
  EXPECT_EQ(session->notice(), "");

  lathe::GenerateOptions options;
  options.maxTokens = 5;
  std::string streamed;
  auto answer =
      session->chat({{"user", "bc"}}, options, [&](const std::string &text) {
        streamed += text;
        return true;
      });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->text, "aaaaa");
  EXPECT_EQ(streamed, "aaaaa");
  EXPECT_THAT(answer->tokens, ElementsAre(0, 0, 0, 0, 0));
  EXPECT_EQ(answer->finishReason, lathe::FinishReason::Length);
  EXPECT_EQ(answer->promptTokens, 4u);
  EXPECT_GT(answer->decodeTokensPerSecond, 0);

  options.maxTokens = SIZE_MAX; // the context ends it
  answer = session->complete("bcd", options);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->text, std::string(36, 'a'));

  auto logits = session->logits({1, 2});
  ASSERT_TRUE(logits);
  EXPECT_EQ(logits->size(), 16u);
  EXPECT_EQ((*logits)[0], 2.0f);
}

TEST_F(ApiTest, AnswersEndWhereTheyShould) {
  auto model = open();
  ASSERT_TRUE(model) << model.error().message;
  auto session = lathe::Session::create(*model, {1, 0, 0});
  ASSERT_TRUE(session) << session.error().message;
  lathe::GenerateOptions options;
  options.maxTokens = 6;

  options.stop = {"aaa"};
  auto answer = session->complete("b", options);
  EXPECT_EQ(answer->text, "");
  EXPECT_EQ(answer->finishReason, lathe::FinishReason::Stop);
  EXPECT_EQ(answer->tokens.size(), 3u);
  options.stop = {"aab"}; // never completes: held text comes at the end
  answer = session->complete("b", options);
  EXPECT_EQ(answer->text, "aaaaaa");
  EXPECT_EQ(answer->finishReason, lathe::FinishReason::Length);

  options.stop = {"<|end|>"}; // a control token's text
  options.logitBias = {{15, 10.0f}};
  answer = session->complete("b", options);
  EXPECT_EQ(answer->text, "");
  EXPECT_EQ(answer->finishReason, lathe::FinishReason::Stop);

  options.stop = {};
  options.logitBias = {{14, 10.0f}}; // the end token
  answer = session->complete("b", options);
  EXPECT_TRUE(answer->tokens.empty());
  EXPECT_EQ(answer->finishReason, lathe::FinishReason::Stop);
  options.ignoreEnd = true;
  answer = session->complete("b", options);
  EXPECT_EQ(answer->tokens.size(), 6u);
  EXPECT_EQ(answer->text, "");

  options.logitBias = {};
  answer = session->complete("b", options,
                             [](const std::string &) { return false; });
  EXPECT_EQ(answer->text, "a");
  EXPECT_EQ(answer->finishReason, lathe::FinishReason::Cancelled);
}

TEST_F(ApiTest, ErrorsAreValues) {
  auto missing = lathe::Model::open(dir.path("none.lathe"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, lathe::ErrorCode::NotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("none.lathe"));

  auto model = open();
  ASSERT_TRUE(model) << model.error().message;
  auto session = lathe::Session::create(*model, {1, 65, 0});
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, lathe::ErrorCode::InvalidInput);
  session = lathe::Session::create(*model, {1, 0, 0});
  ASSERT_TRUE(session);
  EXPECT_FALSE(session->generate({}));
  EXPECT_FALSE(session->logits({}));
  EXPECT_THAT(session->generate({99}).error().message,
              HasSubstr("not in the vocabulary"));
  EXPECT_FALSE(session->complete(std::string(100, 'a')));
  lathe::GenerateOptions options;
  options.stop = {""};
  EXPECT_FALSE(session->complete("a", options));

  auto engine = description();
  engine.tokenizer->chatTemplate.clear();
  model = open(engine);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->tokenizeChat({{"user", "a"}}).error().code,
            lathe::ErrorCode::Unsupported);
  engine.tokenizer->chatTemplate = "{% for %}";
  model = open(engine);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_THAT(model->tokenizeChat({{"user", "a"}}).error().message,
              HasSubstr("chat template"));
  EXPECT_TRUE(model->tokenize("a"));
}

} // namespace

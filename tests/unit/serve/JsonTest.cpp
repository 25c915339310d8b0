#include "runtime/serve/Json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace lathe;
using namespace lathe::runtime::serve;
using testing::HasSubstr;

namespace {

std::string refusal(const std::string &body) {
  auto read = readJson(body);
  return read ? "" : read.error().message;
}

TEST(Json, DepthIsLimited) {
  auto nested = [](int levels) {
    // The object is one.
    return "{\"a\":" + std::string(levels - 1, '[') +
           std::string(levels - 1, ']') + "}";
  };
  EXPECT_EQ(refusal(nested(jsonDepthMax)), "");
  EXPECT_THAT(refusal(nested(jsonDepthMax + 1)), HasSubstr("deeper"));
  // Refused before the end is looked for.
  EXPECT_THAT(refusal("{\"a\":" + std::string(100'000, '[')),
              HasSubstr("deeper"));
}

TEST(Json, ValuesAreLimited) {
  std::string body = "{\"a\":[";
  for (u32 i = 0; i < 3 * jsonValuesMax; ++i)
    body += "[],";
  EXPECT_THAT(refusal(body), HasSubstr("values"));
}

TEST(Json, KeysAreThereOnce) {
  EXPECT_THAT(refusal(R"({"a":1,"b":{"a":1,"c":{}},"a":2})"),
              HasSubstr("'a' twice"));
  EXPECT_EQ(refusal(R"({"a":{"a":{"a":1},"b":[{"a":1},{"a":1}]}})"), "");
}

TEST(Json, OnlyObjectsOfValidText) {
  for (const char *body : {"", "[]", "1", "null", "{", "{}x", "{\"a\":}",
                           "{\"a\":\"\xc3\x28\"}", "{\"a\":\"\\ud800\"}",
                           "{\"a\":NaN}", "{\"a\":1e999}", "{\"a\":\"\n\"}"})
    EXPECT_NE(refusal(body), "") << body;
  auto read = readJson("{\"a\":\"\\u0000\\ud83d\\ude00\"}");
  ASSERT_TRUE(read);
  EXPECT_EQ((*read)["a"], std::string("\0\xf0\x9f\x98\x80", 5));
  // What was sent is not shown where it is no text.
  EXPECT_THAT(refusal("{\"\xff\xfe\":1}"), testing::Not(HasSubstr("\xff")));
}

TEST(Json, WrittenTextIsReadBack) {
  std::string text;
  for (int c = 0; c < 128; ++c)
    text += char(c);
  text += "é\xe2\x80\xa8\xf0\x9f\x98\x80";
  std::string out;
  appendString(out, text);
  EXPECT_EQ(nlohmann::json::parse(out), text);
  out.clear();
  appendLogProb(out, -1 / 3.0);
  EXPECT_EQ(nlohmann::json::parse(out).get<f64>(), -1 / 3.0);
  out.clear();
  appendLogProb(out, -std::numeric_limits<f64>::infinity());
  EXPECT_EQ(nlohmann::json::parse(out), -9999.0);
}

} // namespace

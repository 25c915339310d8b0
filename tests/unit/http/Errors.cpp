#include "tests/unit/http/Errors.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace lathe::tests {

void expectError(const Answer &answer, u32 status) {
  EXPECT_EQ(answer.status, status) << answer.body;
  auto json = nlohmann::json::parse(answer.body, nullptr, false);
  ASSERT_TRUE(json.is_object() && json.contains("error")) << answer.body;
  for (const char *key : {"message", "type", "param", "code"})
    EXPECT_TRUE(json["error"].contains(key)) << key;
  EXPECT_EQ(answer.header("content-type"), "application/json");
  EXPECT_EQ(answer.header("server"), "lathe");
  EXPECT_FALSE(answer.header("x-request-id").empty());
}

} // namespace lathe::tests

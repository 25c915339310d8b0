#include "runtime/serve/PageText.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

using namespace lathe::runtime::serve;
using testing::HasSubstr;
using testing::Not;

namespace {

std::string sourceFile(const std::string &name) {
  std::ifstream file("runtime/serve/page/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

TEST(Site, ThePageIsItsThreeFilesInOne) {
  std::string page(pageText());
  EXPECT_THAT(page, HasSubstr(sourceFile("page.css")));
  EXPECT_THAT(page, HasSubstr(sourceFile("page.js")));
  EXPECT_THAT(page, Not(HasSubstr("/*@")));
  std::string html = sourceFile("index.html");
  EXPECT_TRUE(page.starts_with(html.substr(0, html.find("/*@style@*/"))));
  EXPECT_TRUE(page.ends_with(html.substr(html.find("/*@script@*/") + 12)));
}

} // namespace

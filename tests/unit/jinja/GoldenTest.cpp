// Byte-for-byte comparison with Python's jinja2, set up as Hugging Face sets
// it up. tests/golden/jinja/make_jinja.py makes the file and says how to add a
// case.
#include "runtime/text/jinja/Template.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>

using namespace lathe::runtime::jinja;
using Json = nlohmann::ordered_json;

namespace {

Json readGolden() {
  const char *root = std::getenv("LATHE_SOURCE_DIR");
  std::ifstream in(std::string(root ? root : ".") +
                   "/tests/golden/jinja/jinja.json");
  return Json::parse(in);
}

/// The clock that make_jinja.py uses: 2024-07-26 (a Friday) 14:05:09.
std::tm fixedClock() {
  std::tm now{};
  now.tm_year = 124;
  now.tm_mon = 6;
  now.tm_mday = 26;
  now.tm_hour = 14;
  now.tm_min = 5;
  now.tm_sec = 9;
  now.tm_wday = 5;
  now.tm_yday = 207;
  return now;
}

void check(const Json &context, const std::string &source, const Json &expected,
           const std::string &name) {
  SCOPED_TRACE(name + ": " + source.substr(0, 200));
  RenderOptions options;
  options.clock = fixedClock;
  auto parsed = Template::parse(source);
  lathe::runtime::Result<Rendered> rendered;
  if (parsed)
    rendered = parsed->render(context, options);
  bool ok = parsed && rendered;
  std::string message = !parsed     ? parsed.error().message
                        : !rendered ? rendered.error().message
                                    : "";
  if (expected.contains("error")) {
    EXPECT_FALSE(ok) << "jinja2 raises " << expected["error"] << ", we give "
                     << rendered->text();
    if (expected.contains("raised"))
      EXPECT_EQ(message, expected["raised"].get<std::string>());
    return;
  }
  ASSERT_TRUE(ok) << message;
  EXPECT_EQ(rendered->text(), expected["text"].get<std::string>());
}

} // namespace

TEST(JinjaGolden, TemplatesOfModels) {
  Json golden = readGolden();
  size_t count = 0;
  for (const auto &[name, entry] : golden["templates"].items())
    for (const auto &[contextName, expected] : entry["results"].items()) {
      check(golden["contexts"][contextName], entry["source"].get<std::string>(),
            expected, name + " with " + contextName);
      ++count;
    }
  EXPECT_GE(golden["templates"].size(), 24u);
  EXPECT_GE(count, 200u);
}

TEST(JinjaGolden, MicroCases) {
  Json golden = readGolden();
  const Json &context = golden["contexts"]["micro"];
  for (const Json &entry : golden["micro"])
    check(context, entry["source"].get<std::string>(), entry, "micro");
  EXPECT_GE(golden["micro"].size(), 300u);
}

// The interface: errors and where they are, kinds, options.
#include "runtime/text/jinja/Template.h"

#include <gtest/gtest.h>
#include <thread>

using namespace lathe::runtime;
using namespace lathe::runtime::jinja;
using Json = nlohmann::ordered_json;

namespace {

Result<Rendered> render(std::string_view source, const Json &context,
                        const RenderOptions &options = {}) {
  auto parsed = Template::parse(source);
  if (!parsed)
    return tl::unexpected<Error>(parsed.error());
  return parsed->render(context, options);
}

std::string text(std::string_view source, const Json &context = Json::object(),
                 const RenderOptions &options = {}) {
  auto result = render(source, context, options);
  return result ? result->text() : "error: " + result.error().message;
}

} // namespace

// B07 of the fault list: break, slices, selectattr, items, tojson arguments.
TEST(JinjaTemplate, FeaturesOfModelTemplates) {
  Json context = {{"messages",
                   {{{"role", "user"}, {"content", "a"}},
                    {{"role", "assistant"}, {"content", "z"}},
                    {{"role", "user"}, {"content", "xX\ny"}}}},
                  {"tools", {{{"type", "function"}}}}};
  EXPECT_EQ(
      text("{%- for m in messages[::-1] %}{% if m.role != 'user' %}"
           "{% continue %}{% endif %}{{ m.content.split('X')[-1]"
           ".lstrip('\\n') }}{% break %}{% endfor %}"
           "{% set ns = namespace(n=0) %}{% for m in messages|"
           "selectattr('role','equalto','user') %}{% set ns.n = ns.n + 1 %}"
           "{% endfor %}#{{ ns.n }}{% for k,v in {'b':1}|items %}{{ k }}="
           "{{ v }}{% endfor %}{{ tools is defined and tools|length }}"
           "{{ {'c':'é<'}|tojson(ensure_ascii=False) }}",
           context),
      "y#2b=11{\"c\": \"é<\"}");
}

TEST(JinjaTemplate, RaisedMessageGoesOutAsItIs) {
  auto result = render("{{ raise_exception('System role not ' ~ what) }}",
                       {{"what", "supported"}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::InvalidInput);
  EXPECT_EQ(result.error().message, "System role not supported");
}

TEST(JinjaTemplate, RuntimeErrorsNameTheLine) {
  auto result = render("a\n{{ x }}\n  {{ x.y.z }}", {{"x", 1}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(result.error().message,
            "chat template, line 3, column 3: 'int object' has no attribute "
            "'y'");
  EXPECT_NE(text("{{ nope.x }}").find("'nope' is undefined"),
            std::string::npos);
}

TEST(JinjaTemplate, ParseErrorsNameLineAndColumn) {
  struct {
    const char *source, *where, *what;
  } cases[] = {
      {"a\nbc {{ 1 + }}", "line 2, column 11", "expected an expression"},
      {"{% if x %}", "line 1, column 11", "{% endif %}"},
      {"é\n{% foo %}", "line 2, column 4", "unknown tag 'foo'"},
      {"{{ x | nope }}", "line 1, column 8", "no filter named 'nope'"},
      {"{{ x is nope }}", "line 1, column 9", "no test named 'nope'"},
      {"x{{ 'abc }}", "line 1, column 5", "string without end"},
      {"x {# y", "line 1, column 3", "comment without end"},
      {"{% raw %}", "line 1, column 1", "endraw"},
      {"{{ a", "line 1, column 1", "tag without '}}'"},
      {"{{ (1] }}", "line 1, column 6", "unexpected ']'"},
      {"\n\n{% break %}", "line 3, column 4", "outside of a loop"},
      {"ok \xff", "line 1, column 4", "UTF-8"},
      {"{% for x in y recursive %}", "line 1, column 15", "recursive"},
  };
  for (const auto &c : cases) {
    auto parsed = Template::parse(c.source);
    ASSERT_FALSE(parsed) << c.source;
    EXPECT_EQ(parsed.error().kind, ErrorKind::InvalidInput);
    EXPECT_NE(parsed.error().message.find(c.where), std::string::npos)
        << c.source << ": " << parsed.error().message;
    EXPECT_NE(parsed.error().message.find(c.what), std::string::npos)
        << c.source << ": " << parsed.error().message;
  }
}

TEST(JinjaTemplate, ContextMustBeAnObjectOfUtf8) {
  auto notObject = render("x", Json::array());
  ASSERT_FALSE(notObject);
  EXPECT_EQ(notObject.error().kind, ErrorKind::InvalidInput);
  auto invalid = render("{{ x }}", {{"x", "a\xC3\x28"}});
  ASSERT_FALSE(invalid);
  EXPECT_EQ(invalid.error().kind, ErrorKind::InvalidInput);
  auto key = render("{{ x }}", {{"x", {{"\xff", 1}}}});
  EXPECT_FALSE(key);
  // What the template does not read is not looked at.
  EXPECT_EQ(text("{{ y }}", {{"x", "\xff"}, {"y", 1}}), "1");
}

TEST(JinjaTemplate, ContextOverridesGlobals) {
  EXPECT_EQ(text("{{ range }}{{ dict }}", {{"range", 1}, {"dict", "d"}}), "1d");
}

TEST(JinjaTemplate, NulBytesAreText) {
  EXPECT_EQ(text("{{ x }}{{ x|length }}", {{"x", std::string("ab\0cd", 5)}}),
            std::string("ab\0cd5", 6));
}

TEST(JinjaTemplate, ClockIsInjected) {
  RenderOptions options;
  options.clock = [] {
    std::tm now{};
    now.tm_year = 100;
    now.tm_mday = 1;
    return now;
  };
  EXPECT_EQ(text("{{ strftime_now('%Y-%m-%d') }}", Json::object(), options),
            "2000-01-01");
  EXPECT_NE(text("{{ strftime_now('%9999999d') }}", Json::object(), options)
                .find("error"),
            std::string::npos);
}

TEST(JinjaTemplate, OneTemplateRendersOnManyThreads) {
  auto parsed = Template::parse(
      "{% for m in messages %}{{ 'x' ~ m.content|upper }}{% endfor %}");
  ASSERT_TRUE(parsed);
  std::vector<std::thread> threads;
  std::vector<std::string> results(8);
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] {
      Json context = {{"messages", Json::array()}};
      for (int j = 0; j < 200; ++j)
        context["messages"].push_back({{"content", "a" + std::to_string(i)}});
      auto result = parsed->render(context);
      results[i] = result ? result->text() : result.error().message;
    });
  for (auto &thread : threads)
    thread.join();
  for (size_t i = 0; i < results.size(); ++i) {
    std::string expected;
    for (int j = 0; j < 200; ++j)
      expected += "xA" + std::to_string(i);
    EXPECT_EQ(results[i], expected);
  }
}

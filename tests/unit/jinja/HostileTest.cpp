// Templates made to break the interpreter: each must end in an error (or a
// plain result), quickly, within the budgets and a small stack.
#include "runtime/text/jinja/Template.h"

#include <chrono>
#include <gtest/gtest.h>
#include <pthread.h>
#include <random>

using namespace lathe::runtime;
using namespace lathe::runtime::jinja;
using Json = nlohmann::ordered_json;

namespace {

std::string repeat(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i)
    out += text;
  return out;
}

/// Parses and renders on a thread with the stack of `ulimit -s 1024` (more
/// under sanitizers, whose frames are several times larger).
Result<Rendered> renderOnSmallStack(const std::string &source,
                                    const Json &context,
                                    const RenderOptions &options) {
  struct Job {
    const std::string &source;
    const Json &context;
    const RenderOptions &options;
    Result<Rendered> result;
  } job{source, context, options, {}};
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
  constexpr size_t stackBytes = size_t{8} << 20;
#else
  constexpr size_t stackBytes = size_t{1} << 20;
#endif
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stackBytes);
  pthread_t thread;
  pthread_create(
      &thread, &attributes,
      [](void *p) -> void * {
        auto &job = *static_cast<Job *>(p);
        auto parsed = Template::parse(job.source);
        if (parsed)
          job.result = parsed->render(job.context, job.options);
        else
          job.result = tl::unexpected<Error>(parsed.error());
        return nullptr;
      },
      &job);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return job.result;
}

/// A tenth of the default steps and memory, to keep the tests short.
RenderOptions smallBudgets() {
  RenderOptions options;
  options.limits.steps /= 10;
  options.limits.valueBytes /= 10;
  return options;
}

/// Checks that `source` fails with `kind` within a few seconds.
void expectFailure(const std::string &source, ErrorKind kind,
                   const Json &context = Json::object(),
                   const RenderOptions &options = smallBudgets()) {
  SCOPED_TRACE(source.substr(0, 120));
  auto start = std::chrono::steady_clock::now();
  auto result = renderOnSmallStack(source, context, options);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, kind) << result.error().message;
  EXPECT_LT(took.count(), 30.0);
}

} // namespace

TEST(JinjaHostile, DeepNestingIsRefusedByTheParser) {
  constexpr size_t n = 100'000;
  for (const char *open : {"[", "(", "{1:", "-", "+", "not ", "a[", "f(",
                           "a if ", "a|map(", "1 if 1 else "})
    expectFailure("{{ " + repeat(open, n) + " }}", ErrorKind::InvalidInput);
  expectFailure("{{ a" + repeat(".b", n) + " }}", ErrorKind::InvalidInput);
  expectFailure("{{ a" + repeat("[0]", n) + " }}", ErrorKind::InvalidInput);
  expectFailure("{{ a" + repeat("()", n) + " }}", ErrorKind::InvalidInput);
  expectFailure("{{ a" + repeat("|trim", n) + " }}", ErrorKind::InvalidInput);
  expectFailure("{{ 1" + repeat("+1", n) + " }}", ErrorKind::InvalidInput);
  expectFailure("{{ 1" + repeat("**1", n) + " }}", ErrorKind::InvalidInput);
  expectFailure(repeat("{% if 1 %}", n), ErrorKind::InvalidInput);
  expectFailure(repeat("{% for x in y %}", n), ErrorKind::InvalidInput);
  expectFailure(repeat("{% macro m() %}", n), ErrorKind::InvalidInput);
  expectFailure(repeat("{% filter trim %}", n), ErrorKind::InvalidInput);
  expectFailure("{% set " + repeat("(", n) + "x %}", ErrorKind::InvalidInput);
  expectFailure("{% for " + repeat("(", n) + "x in y %}",
                ErrorKind::InvalidInput);
}

TEST(JinjaHostile, WideTemplatesAreFine) {
  constexpr size_t n = 20'000;
  for (std::string source :
       {"{{ 1" + repeat(" and 1", n) + " }}",
        "{{ 'a'" + repeat(" ~ 'a'", n) + " }}",
        "{{ [" + repeat("1,", n) + "]|length }}",
        "{% if 0 %}" + repeat("{% elif 0 %}", n) + "{% endif %}",
        repeat("{% set x = 1 %}", n), repeat("{{ 1 }}", n),
        repeat("{# x #}", n), repeat("{ ", n),
        repeat("{% raw %}{% endraw %}", n)}) {
    auto result = renderOnSmallStack(source, Json::object(), {});
    EXPECT_TRUE(result) << source.substr(0, 40) << result.error().message;
  }
}

TEST(JinjaHostile, DeepestAllowedNestingFitsTheStack) {
  for (size_t depth = 40; depth <= 100; ++depth)
    for (const char *pair : {"[]", "()"}) {
      std::string source = "{{ " + repeat(std::string(1, pair[0]), depth) +
                           repeat(std::string(1, pair[1]), depth) + " }}";
      auto result = renderOnSmallStack(source, Json::object(), {});
      if (depth < 90)
        EXPECT_TRUE(result) << depth << result.error().message;
    }
}

TEST(JinjaHostile, RecursionIsBounded) {
  expectFailure("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
                ErrorKind::Exhausted);
  expectFailure("{% macro m(f) %}{% if 1 %}{% for x in [1] %}{% filter upper "
                "%}{{ '%s'|format([f(f)]|map('string')|join) }}{% endfilter "
                "%}{% endfor %}{% endif %}{% endmacro %}{{ m(m) }}",
                ErrorKind::Exhausted);
  expectFailure("{% macro m() %}{{ caller() }}{% endmacro %}{% macro r() %}"
                "{% call m() %}{{ r() }}{% endcall %}{% endmacro %}{{ r() }}",
                ErrorKind::Exhausted);
  expectFailure("{% macro m(a=m()) %}{% endmacro %}{{ m() }}",
                ErrorKind::Exhausted);
}

TEST(JinjaHostile, ValuesNestOnlySoDeep) {
  expectFailure("{% set ns = namespace(x=[]) %}{% for i in range(100000) %}"
                "{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
                ErrorKind::Exhausted);
  expectFailure("{% set ns = namespace(x={}) %}{% for i in range(100000) %}"
                "{% set ns.x = {'a': ns.x} %}{% endfor %}{{ ns.x|tojson }}",
                ErrorKind::Exhausted);
  // Chains and rings of namespaces are freed, and printed only so deep.
  expectFailure("{% set ns = namespace(x=1) %}{% for i in range(100000) %}"
                "{% set ns.x = namespace(x=ns.x) %}{% endfor %}{{ ns }}",
                ErrorKind::Unsupported, Json::object(), {});
  expectFailure("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}",
                ErrorKind::Unsupported);
  expectFailure("{% set ns = namespace() %}{% set ns.me = [ns, ns] %}{{ ns }}",
                ErrorKind::Unsupported);
}

TEST(JinjaHostile, ContextsNestOnlySoDeep) {
  Json deep = Json::array();
  for (int i = 0; i < 3000; ++i)
    deep = Json::array({std::move(deep)});
  expectFailure("{{ tools }}", ErrorKind::InvalidInput, {{"tools", deep}});
}

TEST(JinjaHostile, GrowthIsBounded) {
  expectFailure("{% set ns = namespace(s='x') %}{% for i in range(100) %}"
                "{% set ns.s = ns.s + ns.s %}{% endfor %}",
                ErrorKind::Exhausted);
  expectFailure("{% set ns = namespace(l=[1]) %}{% for i in range(100) %}"
                "{% set ns.l = ns.l + ns.l %}{% endfor %}",
                ErrorKind::Exhausted);
  // A small value that prints as a huge one, and compares slowly.
  std::string tree = "{% set ns = namespace(t=[1]) %}{% for i in range(60) %}"
                     "{% set ns.t = [ns.t, ns.t] %}{% endfor %}";
  expectFailure(tree + "{{ ns.t }}", ErrorKind::Exhausted);
  expectFailure(tree + "{{ ns.t|tojson }}", ErrorKind::Exhausted);
  expectFailure(tree + "{{ ns.t|string|length }}", ErrorKind::Exhausted);
  expectFailure(tree + "{{ ns.t == [ns.t[0], ns.t[1]] }}{{ ns.t == "
                       "ns.t[:] }}",
                ErrorKind::Exhausted);
  expectFailure("{{ 'x' * 10**12 }}", ErrorKind::Exhausted);
  expectFailure("{{ [1] * 10**12 }}", ErrorKind::Exhausted);
  expectFailure("{{ [1, 2] * 10**18 }}", ErrorKind::Exhausted);
  expectFailure("{{ 'abc'.ljust(10**12) }}", ErrorKind::Exhausted);
  expectFailure("{{ 'abc'.zfill(10**12) }}", ErrorKind::Exhausted);
  expectFailure("{{ 'a'|indent(10**12, true) }}", ErrorKind::Exhausted);
  expectFailure("{{ ('ab' * 100000).replace('a', 'ab' * 100000)|length }}",
                ErrorKind::Exhausted);
  expectFailure("{{ (['x' * 100000] * 100000)|join|length }}",
                ErrorKind::Exhausted);
  expectFailure("{{ [1]|batch(10**12, 0)|list }}", ErrorKind::Exhausted);
  expectFailure("{{ [1]|slice(10**12)|list }}", ErrorKind::Exhausted);
  expectFailure("{{ '%99999999d' % 1 }}", ErrorKind::Unsupported);
  expectFailure("{{ '{:99999999}'.format(1) }}", ErrorKind::Unsupported);
  expectFailure("{{ '%.99999999f' % 1 }}", ErrorKind::Unsupported);
  expectFailure("{{ [1]|tojson(indent=10**12) }}", ErrorKind::Unsupported);
}

TEST(JinjaHostile, WorkIsBounded) {
  expectFailure("{{ range(10**9) }}", ErrorKind::Unsupported);
  std::string loops;
  for (const char *name : {"a", "b", "c"})
    loops += std::string("{% for ") + name + " in range(100000) %}";
  expectFailure(loops + "{% endfor %}{% endfor %}{% endfor %}",
                ErrorKind::Exhausted);
  expectFailure(loops + "x{% endfor %}{% endfor %}{% endfor %}",
                ErrorKind::Exhausted);
  expectFailure("{% for i in range(100000) %}{{ range(100000)|list|length }}"
                "{% endfor %}",
                ErrorKind::Exhausted);
  expectFailure("{% set s = 'a' * 1000000 %}{% for i in range(100000) %}"
                "{{ (s ~ 'b') in s }}{{ s.rfind('aaaaaaaab') }}{% endfor %}",
                ErrorKind::Exhausted);
  expectFailure("{% set s = 'a' * 4000000 %}{{ s.rfind('a' * 2000000 ~ 'b') "
                "}}{% for i in range(100000) %}{{ s.rfind('a' * 2000000 ~ "
                "'b') }}{% endfor %}",
                ErrorKind::Exhausted);
  expectFailure("{{ range(100000)|unique|list|length }}", ErrorKind::Exhausted);
  expectFailure("{% set ns = namespace() %}{% for i in range(100000) %}{% for "
                "j in range(100000) if j < 0 %}{% endfor %}{% endfor %}",
                ErrorKind::Exhausted);
}

TEST(JinjaHostile, DefaultBudgetsEndSoon) {
  expectFailure("{% for i in range(100000) %}{% for j in range(100000) %}"
                "{% endfor %}{% endfor %}",
                ErrorKind::Exhausted, Json::object(), {});
  expectFailure("{% set ns = namespace(s='x') %}{% for i in range(100) %}"
                "{% set ns.s = ns.s + ns.s %}{% endfor %}",
                ErrorKind::Exhausted, Json::object(), {});
}

TEST(JinjaHostile, NumbersStayInRange) {
  expectFailure("{{ 9 ** 999999999 }}", ErrorKind::Unsupported);
  expectFailure("{{ range(-(2**120), 2**120, 2**119) }}",
                ErrorKind::Unsupported);
  expectFailure("{{ 2 ** 127 }}", ErrorKind::Unsupported);
  expectFailure("{{ -2 ** 999 }}", ErrorKind::Unsupported);
  expectFailure("{{ 2.0 ** 99999 }}", ErrorKind::Unsupported);
  expectFailure("{{ 2 ** 80 * 2 ** 80 }}", ErrorKind::Unsupported);
  expectFailure("{{ 1e300|int }}", ErrorKind::Unsupported);
  expectFailure("{{ '9' * 100 }}{{ ('9' * 100)|int }}", ErrorKind::Unsupported);
  expectFailure("{{ " + repeat("9", 100) + " }}", ErrorKind::InvalidInput);
  for (const char *source :
       {"{{ 1 ** 999999999999 }}", "{{ (-1) ** 999999999999 }}", "{{ 0 ** 5 }}",
        "{{ 2 ** 120 }}", "{{ -(2 ** 120) // -1 }}", "{{ 1e308 * 10 }}",
        "{{ 7 % -1 }}", "{{ 'abc'[2**100:-(2**100)] }}",
        "{{ [1, 2, 3][::2**100] }}", "{{ 'abc'[2**100] }}",
        "{{ range(4)[::2**100]|list }}",
        "{{ range(0, 9, 2**70)[::-(2**99)]|list }}", "{{ 5|round(2**100) }}",
        "{{ 5.5|round(-(2**100)) }}", "{{ 'aXb'.split('X', 2**100) }}",
        "{{ 'ab'.find('b', -(2**100)) }}",
        "{{ [3, 'nan'|float, 1, 'nan'|float, 2]|sort }}"}) {
    auto result = renderOnSmallStack(source, Json::object(), {});
    EXPECT_TRUE(result) << source << result.error().message;
  }
}

TEST(JinjaHostile, LimitsAreObeyed) {
  RenderOptions options;
  options.limits.outputBytes = 10;
  expectFailure("{{ 'x' * 11 }}", ErrorKind::Exhausted, Json::object(),
                options);
  expectFailure("12345678901", ErrorKind::Exhausted, Json::object(), options);
  EXPECT_TRUE(renderOnSmallStack("1234567890", Json::object(), options));
  options = {};
  options.limits.steps = 100;
  expectFailure("{% for i in range(200) %}{% endfor %}", ErrorKind::Exhausted,
                Json::object(), options);
  EXPECT_TRUE(renderOnSmallStack("{% for i in range(9) %}{% endfor %}",
                                 Json::object(), options));
  options = {};
  options.limits.valueBytes = 10'000;
  expectFailure("{{ x }}", ErrorKind::Exhausted,
                {{"x", std::string(20'000, 'a')}}, options);
  options = {};
  options.limits.depth = 5;
  expectFailure("{{ [[[[[[1]]]]]] }}", ErrorKind::Exhausted, Json::object(),
                options);
}

TEST(JinjaHostile, LongMessagesRenderQuickly) {
  std::string content;
  for (int i = 0; i < 20'000; ++i)
    content += "Some words, <|im_end|> and a newline\nmore \xF0\x9F\xA6\x99 ";
  Json context = {{"messages", Json::array()}};
  for (int i = 0; i < 4; ++i)
    context["messages"].push_back({{"role", "user"}, {"content", content}});
  auto result = renderOnSmallStack(
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + "
      "m.content|trim + '<|im_end|>' }}{{ m|tojson|length }}{% endfor %}",
      context, {});
  ASSERT_TRUE(result) << result.error().message;
}

// Cuts and mutations of a real-looking template never crash the parser.
TEST(JinjaHostile, MutatedTemplates) {
  const std::string source =
      "{%- if tools %}{{- '<|im_start|>system\\n' }}{%- for tool in tools "
      "%}{{ tool | tojson(indent=2) }}{%- endfor %}{%- endif %}{% set ns = "
      "namespace(a=1, b=[1, 2][::-1]) %}{% macro m(x, y=none) -%}{{ x ~ y "
      "}}{%- endmacro %}{% for m_ in messages if m_.role != 'x' %}{{ m(m_."
      "content.split('a')[-1]|upper, y=loop.index) }}{% else %}{# none #}"
      "{% endfor %}{% raw %}{{ x }}{% endraw %}{{ 'a' if ns.a is odd and not "
      "ns.b else 2 ** -1 }}";
  Json context = {{"messages", {{{"role", "user"}, {"content", "bab"}}}},
                  {"tools", {{{"name", "t"}}}}};
  RenderOptions options;
  options.limits.steps = 100'000;
  options.limits.valueBytes = size_t{8} << 20;
  options.limits.outputBytes = size_t{1} << 20;
  ASSERT_TRUE(Template::parse(source));
  ASSERT_TRUE(Template::parse(source)->render(context, options));
  auto tryOne = [&](const std::string &text) {
    if (auto parsed = Template::parse(text))
      (void)parsed->render(context, options);
  };
  for (size_t i = 0; i < source.size(); ++i) {
    tryOne(source.substr(0, i));
    tryOne(source.substr(i));
  }
  std::mt19937 random(7);
  static constexpr std::string_view pieces[] = {
      "{%", "%}", "{{", "}}",   "-",    "(",    ")",     "[",
      "]",  "|",  "'",  "if ",  " in ", "for ", "endif", ":",
      "**", ".",  ",",  "\xff", "loop", "1",    "not "};
  for (int i = 0; i < 20'000; ++i) {
    std::string text = source;
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
      size_t at = random() % text.size();
      std::string_view piece = pieces[random() % std::size(pieces)];
      switch (random() % 3) {
      case 0:
        text.insert(at, piece);
        break;
      case 1:
        text.erase(at, 1 + random() % 8);
        break;
      default:
        text.replace(at, std::min(piece.size(), text.size() - at), piece);
      }
      if (text.empty())
        text = "x";
    }
    tryOne(text);
  }
}

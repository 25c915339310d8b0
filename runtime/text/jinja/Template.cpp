#include "runtime/text/jinja/Template.h"

#include "runtime/text/jinja/Interpreter.h"
#include "runtime/text/jinja/Parser.h"
#include "runtime/text/jinja/Unicode.h"

#include <algorithm>
#include <new>

namespace lathe::runtime::jinja {

namespace {

constexpr size_t maxTemplateBytes = size_t{4} << 20;

} // namespace

std::string detail::Program::where(size_t offset) const {
  std::string_view before =
      std::string_view(source).substr(0, std::min(offset, source.size()));
  auto line = std::count(before.begin(), before.end(), '\n') + 1;
  size_t start = before.rfind('\n');
  size_t column = start == std::string_view::npos ? before.size() + 1
                                                  : before.size() - start;
  return fmt::format("line {}, column {}", line, column);
}

std::tm localClock() {
  std::time_t now = std::time(nullptr);
  std::tm result{};
  localtime_r(&now, &result);
  return result;
}

std::string Rendered::text() const {
  std::string out;
  for (const Segment &segment : segments)
    out += segment.text;
  return out;
}

Result<Template> Template::parse(std::string_view source) {
  if (source.size() > maxTemplateBytes)
    return fail(ErrorKind::InvalidInput,
                "chat template: {} bytes are more than the allowed {}",
                source.size(), maxTemplateBytes);
  auto program = std::make_shared<detail::Program>();
  try {
    program->source = normalizeNewlines(source);
    if (auto at = findInvalidUtf8(program->source))
      throw Failure{ErrorKind::InvalidInput, "not valid UTF-8", *at};
    Parser(tokenize(program->source)).parse(*program);
  } catch (const Failure &failure) {
    return fail(failure.kind, "chat template, {}: {}",
                program->where(failure.offset), failure.message);
  } catch (const std::bad_alloc &) {
    return fail(ErrorKind::Exhausted, "chat template: out of memory");
  }
  return Template(std::move(program));
}

Result<Rendered> Template::render(const nlohmann::ordered_json &context,
                                  const RenderOptions &options) const {
  if (!context.is_object())
    return fail(ErrorKind::InvalidInput,
                "the context of a chat template must be a JSON object");
  Interpreter interpreter(*program, options);
  try {
    Text text = interpreter.run(context);
    Rendered rendered;
    size_t begin = 0;
    for (const Text::Run &run : text.runs()) {
      rendered.segments.push_back(
          {text.bytes().substr(begin, run.end - begin), run.trusted});
      begin = run.end;
    }
    return rendered;
  } catch (const Failure &failure) {
    if (failure.raised)
      return tl::unexpected<Error>(Error{failure.kind, failure.message});
    size_t offset = failure.offset == Failure::nowhere ? interpreter.position()
                                                       : failure.offset;
    return fail(failure.kind, "chat template, {}: {}", program->where(offset),
                failure.message);
  } catch (const std::bad_alloc &) {
    return fail(ErrorKind::Exhausted, "chat template: out of memory");
  }
}

} // namespace lathe::runtime::jinja

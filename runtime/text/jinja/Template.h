/// \file
/// Chat templates: a Jinja2 interpreter that gives the text Hugging Face's
/// `apply_chat_template` gives (immutable sandbox, trim_blocks, lstrip_blocks,
/// loop controls, `tojson` without HTML escapes, `raise_exception`,
/// `strftime_now`, `{% generation %}`), is safe on hostile templates, and
/// knows of every byte of the result whether the template or the request
/// wrote it.
///
/// Deliberate differences from jinja2: `safe` and `escape` give plain strings,
/// integers beyond 126 bits are an error, generators are evaluated at once,
/// and recursive loops, `include`, `import`, `extends` and `block` are not
/// there.
#ifndef LATHE_RUNTIME_TEXT_JINJA_TEMPLATE_H
#define LATHE_RUNTIME_TEXT_JINJA_TEMPLATE_H

#include "runtime/support/Result.h"

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime::jinja {

/// What one rendering may spend; going over any is ErrorKind::Exhausted.
struct Limits {
  /// Evaluated nodes, loop turns, and 64-byte pieces of string work.
  uint64_t steps = 20'000'000;
  /// Nested evaluations, macro calls included. A level takes at most about
  /// 1 KiB of stack in a release build.
  size_t depth = 400;
  /// Size of the rendered text.
  size_t outputBytes = size_t{16} << 20;
  /// Bytes of values alive at once, context included.
  size_t valueBytes = size_t{128} << 20;
};

/// What `strftime_now` shows. Called from the rendering thread.
using Clock = std::function<std::tm()>;

/// The local time of this machine.
std::tm localClock();

/// A piece of rendered text. Control markers may be parsed only in trusted
/// segments; everything else must be tokenized as plain text.
struct Segment {
  std::string text;
  bool trusted = false;

  bool operator==(const Segment &) const = default;
};

/// The result: segments in order, none empty, neighbours differing in trust.
struct Rendered {
  std::vector<Segment> segments;

  /// All segments joined.
  std::string text() const;
};

/// How to render.
struct RenderOptions {
  Limits limits;
  Clock clock = localClock;
  /// Top-level names whose strings the server itself supplies and which may
  /// therefore contain control markers. All other strings of the context are
  /// untrusted, but for `messages[*].role` when it is one of the usual roles
  /// (templates build markers from it: '<|' + role + '|>').
  std::vector<std::string> trustedNames = {"bos_token", "eos_token",
                                           "pad_token", "unk_token"};
};

namespace detail {
struct Program;
} // namespace detail

/// A parsed template. Immutable: may be rendered by several threads at once.
/// Cheap to copy.
class Template {
public:
  /// Parses `source` (any bytes). Errors: InvalidInput with a message
  /// "line L, column C: …" (both from 1; columns in bytes). Templates over
  /// 4 MiB, nested deeper than 100 levels, with unknown tags, filters or
  /// tests, or not UTF-8 are refused.
  static Result<Template> parse(std::string_view source);

  /// Renders with the names of the JSON object `context`. Errors:
  /// - InvalidInput: the template called raise_exception (the message is
  ///   exactly its argument; a server answers HTTP 400 with it), or the
  ///   context is not a JSON object of valid UTF-8 nested at most 100 deep;
  /// - Unsupported: jinja2 would raise here (undefined attribute, wrong
  ///   type, …), with the template's line;
  /// - Exhausted: a limit was reached.
  Result<Rendered> render(const nlohmann::ordered_json &context,
                          const RenderOptions &options = {}) const;

private:
  explicit Template(std::shared_ptr<const detail::Program> program)
      : program(std::move(program)) {}

  std::shared_ptr<const detail::Program> program;
};

} // namespace lathe::runtime::jinja

#endif // LATHE_RUNTIME_TEXT_JINJA_TEMPLATE_H

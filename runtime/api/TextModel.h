/// \file
/// An engine as something that talks: its code, its tokenizer and its chat
/// template, and generation of text instead of ids.
#ifndef LATHE_RUNTIME_API_TEXTMODEL_H
#define LATHE_RUNTIME_API_TEXTMODEL_H

#include "runtime/schedule/Generate.h"
#include "runtime/schedule/LoadedEngine.h"
#include "runtime/support/Result.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/jinja/Template.h"

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// A loaded engine with its tokenizer. Immutable; any thread.
class TextModel {
public:
  /// Errors: NotFound (the engine has no tokenizer), InvalidInput (a damaged
  /// one). A chat template that cannot be parsed is an error only of
  /// encodeChat().
  static Result<std::shared_ptr<const TextModel>>
  create(std::shared_ptr<const LoadedEngine> engine);

  /// The same with the engine's tokenizer, for callers that make it while the
  /// code loads: its indices take as long to build as all the rest.
  static std::shared_ptr<const TextModel>
  create(std::shared_ptr<const LoadedEngine> engine, Tokenizer tokenizer);

  const std::shared_ptr<const LoadedEngine> &engine() const { return loaded; }
  const Tokenizer &tokenizer() const { return text; }

  /// True if the model has a chat template, be it a damaged one.
  bool hasChatTemplate() const { return chat.has_value(); }

  /// Whether encodeChat() has a template to work with. Errors: Unsupported
  /// (none), InvalidInput (it does not parse).
  Result<void> checkChat() const;

  /// The ids of a conversation by the model's chat template, ready for the
  /// assistant's answer. `messages` is an array of {"role", "content", …}. What
  /// messages say never becomes a control token. Errors: those of checkChat(),
  /// InvalidInput (a content that is not UTF-8), those of Template::render and
  /// Tokenizer::encodeSegments.
  Result<std::vector<i32>>
  encodeChat(const nlohmann::ordered_json &messages) const;

private:
  TextModel(std::shared_ptr<const LoadedEngine> engine, Tokenizer tokenizer)
      : loaded(std::move(engine)), text(std::move(tokenizer)) {}

  std::shared_ptr<const LoadedEngine> loaded;
  Tokenizer text;
  std::optional<Result<jinja::Template>> chat; ///< Nothing if there is none.
};

struct TextOptions {
  /// stopTokens come on top of the model's own end tokens.
  GenerateOptions generate = {};
  /// Strings that end the answer and are not part of it. One that is the text
  /// of a control token stops at that token.
  std::vector<std::string> stops = {};
  /// The stop string stays at the end of the text.
  bool includeStop = false;
  /// The model's own end tokens do not end the answer.
  bool ignoreEnd = false;
};

/// Sees text as soon as it is certain to be part of the answer: whole
/// characters, no part of a stop string. False ends the generation as
/// cancelled.
using TextVisitor = std::function<bool(std::string_view text)>;

struct TextGeneration {
  std::string text;
  Generation generation;
};

/// Generates text after a prompt given as ids. `session` is one of the model's
/// engine. Errors as generate() and StopMatcher::create.
Result<TextGeneration> generateText(Session &session, const TextModel &model,
                                    std::span<const i32> prompt,
                                    TextOptions options,
                                    const TextVisitor &visitor = nullptr);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_API_TEXTMODEL_H

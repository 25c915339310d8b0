#include "runtime/api/TextModel.h"
#include "runtime/text/StopMatcher.h"
#include "runtime/text/StreamDecoder.h"

#include <nlohmann/json.hpp>

namespace lathe::runtime {

Result<std::shared_ptr<const TextModel>>
TextModel::create(std::shared_ptr<const LoadedEngine> engine) {
  auto spec = engine->engine().tokenizer();
  if (!spec)
    return failFrom(spec);
  auto tokenizer = Tokenizer::create(std::move(*spec));
  if (!tokenizer)
    return failFrom(tokenizer, engine->engine().path() + ": tokenizer");
  std::shared_ptr<TextModel> model(
      new TextModel(std::move(engine), std::move(*tokenizer)));
  const std::string &source = model->text.spec().chatTemplate;
  if (!source.empty())
    model->chat = jinja::Template::parse(source);
  return model;
}

Result<std::vector<i32>>
TextModel::encodePrompt(std::string_view prompt) const {
  return text.encode(prompt, {.addSpecial = true, .parseSpecial = false});
}

bool TextModel::canChat() const { return chat.has_value(); }

Result<std::vector<i32>>
TextModel::encodeChat(const nlohmann::ordered_json &messages) const {
  const std::string &path = loaded->engine().path();
  if (!chat)
    return fail(ErrorKind::Unsupported,
                "{}: the model has no chat template; give it a plain prompt "
                "(--raw)",
                path);
  if (!*chat)
    return failFrom(*chat, path + ": chat template");
  const TokenizerSpec &spec = text.spec();
  auto tokenText = [&](i32 id) {
    return id == kNoToken ? std::string() : std::string(text.tokenBytes(id));
  };
  nlohmann::ordered_json context = {{"messages", messages},
                                    {"add_generation_prompt", true},
                                    {"bos_token", tokenText(spec.bosId)},
                                    {"eos_token", tokenText(spec.eosId)},
                                    {"unk_token", tokenText(spec.unkId)},
                                    {"pad_token", tokenText(spec.padId)}};
  auto rendered = (*chat)->render(context);
  if (!rendered)
    return failFrom(rendered);
  std::vector<PromptSegment> segments;
  for (jinja::Segment &segment : rendered->segments)
    segments.push_back({std::move(segment.text), segment.trusted});
  return text.encodeSegments(segments);
}

Result<TextGeneration> generateText(Session &session, const TextModel &model,
                                    std::span<const i32> prompt,
                                    TextOptions options,
                                    const TextVisitor &visitor) {
  const Tokenizer &tokenizer = model.tokenizer();
  auto matcher = StopMatcher::create(options.stops, options.includeStop);
  if (!matcher)
    return failFrom(matcher);
  auto &stopTokens = options.generate.stopTokens;
  for (const std::string &stop : options.stops)
    if (auto id = tokenizer.findSpecial(stop); id && tokenizer.isSpecial(*id))
      stopTokens.push_back(*id);
  if (!options.ignoreEnd)
    stopTokens.insert(stopTokens.end(), tokenizer.spec().endIds.begin(),
                      tokenizer.spec().endIds.end());

  TextGeneration result;
  StreamDecoder decoder(tokenizer);
  std::string decoded, certain;
  bool cancelled = false;
  auto pass = [&] {
    result.text += certain;
    if (visitor && !certain.empty() && !visitor(certain))
      cancelled = true;
    certain.clear();
  };
  auto generated = generate(session, prompt, options.generate,
                            [&](const GeneratedToken &token) {
                              decoded.clear();
                              decoder.push(token.token, decoded);
                              bool stopped = matcher->push(decoded, certain);
                              pass();
                              return !stopped && !cancelled;
                            });
  if (!generated)
    return failFrom(generated);
  result.generation = std::move(*generated);
  if (!cancelled) {
    decoded.clear();
    decoder.flush(decoded);
    bool stopped = matcher->push(decoded, certain);
    stopped |= matcher->flush(certain);
    if (stopped)
      result.generation.reason = FinishReason::Stop;
    pass();
  }
  if (cancelled)
    result.generation.reason = FinishReason::Cancelled;
  return result;
}

} // namespace lathe::runtime

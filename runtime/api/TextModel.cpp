#include "runtime/api/TextModel.h"
#include "runtime/support/Quote.h"
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
    return failFrom(tokenizer, displayPath(engine->engine().path()));
  return create(std::move(engine), std::move(*tokenizer));
}

std::shared_ptr<const TextModel>
TextModel::create(std::shared_ptr<const LoadedEngine> engine,
                  Tokenizer tokenizer) {
  std::shared_ptr<TextModel> model(
      new TextModel(std::move(engine), std::move(tokenizer)));
  const std::string &source = model->text.spec().chatTemplate;
  if (!source.empty())
    model->chat = jinja::Template::parse(source);
  return model;
}

Result<void> TextModel::checkChat() const {
  if (!chat)
    return fail(ErrorKind::Unsupported,
                "the model has no chat template; it can only complete a plain "
                "prompt");
  if (!*chat)
    return failFrom(*chat, "the model's chat template");
  return {};
}

Result<std::vector<i32>>
TextModel::encodeChat(const nlohmann::ordered_json &messages) const {
  if (auto ready = checkChat(); !ready)
    return failFrom(ready);
  for (const auto &message : messages) {
    auto content = message.find("content");
    if (content != message.end() && content->is_string() &&
        !isUtf8(content->get_ref<const std::string &>()))
      return fail(ErrorKind::InvalidInput, "the {} message is not valid UTF-8",
                  message.value("role", std::string()));
  }
  const TokenizerSpec &spec = text.spec();
  auto tokenText = [&](i32 id) {
    return id == kNoToken ? std::string() : spec.tokens[id];
  };
  // The names that Hugging Face's apply_chat_template gives to templates.
  nlohmann::ordered_json context = {{"messages", messages},
                                    {"tools", nullptr},
                                    {"documents", nullptr},
                                    {"add_generation_prompt", true},
                                    {"bos_token", tokenText(spec.bosId)},
                                    {"eos_token", tokenText(spec.eosId)},
                                    {"unk_token", tokenText(spec.unkId)},
                                    {"pad_token", tokenText(spec.padId)}};
  auto rendered = (*chat)->render(context);
  if (!rendered)
    return failFrom(rendered, "the model's chat template");
  std::vector<PromptSegment> segments;
  segments.reserve(rendered->segments.size());
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

#include "tools/lathe/ChatFormat.h"

#include "runtime/support/Quote.h"

using namespace lathe;
using namespace lathe::tools;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::Result;
using Json = nlohmann::ordered_json;

Result<ChatFormat> ChatFormat::create(runtime::Tokenizer tokenizer) {
  const std::string &text = tokenizer.spec().chatTemplate;
  if (text.empty())
    return fail(ErrorKind::NotFound, "the model has no chat template");
  auto source = runtime::jinja::Template::parse(text);
  if (!source)
    return failFrom(source, "the model's chat template");
  return ChatFormat(std::move(tokenizer), std::move(*source));
}

Result<std::vector<i32>>
ChatFormat::encode(const std::vector<Message> &messages) const {
  Json list = Json::array();
  for (const Message &message : messages) {
    if (!runtime::isUtf8(message.content))
      return fail(ErrorKind::InvalidInput,
                  "the {} message is not valid UTF-8 (with --raw any bytes may "
                  "be given)",
                  message.role);
    list.push_back({{"role", message.role}, {"content", message.content}});
  }
  const runtime::TokenizerSpec &spec = tokenizer.spec();
  auto textOf = [&](i32 id) {
    return id == runtime::kNoToken ? std::string() : spec.tokens[id];
  };
  // The names that Hugging Face's apply_chat_template gives to templates.
  Json context = {{"messages", std::move(list)},
                  {"tools", nullptr},
                  {"documents", nullptr},
                  {"add_generation_prompt", true},
                  {"bos_token", textOf(spec.bosId)},
                  {"eos_token", textOf(spec.eosId)},
                  {"unk_token", textOf(spec.unkId)},
                  {"pad_token", textOf(spec.padId)}};
  auto rendered = source.render(context);
  if (!rendered)
    return failFrom(rendered, "the model's chat template");
  std::vector<runtime::PromptSegment> segments;
  segments.reserve(rendered->segments.size());
  for (runtime::jinja::Segment &segment : rendered->segments)
    segments.push_back({std::move(segment.text), segment.trusted});
  return tokenizer.encodeSegments(segments);
}

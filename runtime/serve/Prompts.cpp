#include "runtime/serve/Prompts.h"
#include "runtime/serve/Parameters.h"

#include <spdlog/spdlog.h>

namespace lathe::runtime::serve {

std::optional<std::vector<i32>> idsOf(const json &array) {
  std::vector<i32> ids;
  if (!array.is_array())
    return std::nullopt;
  ids.reserve(array.size());
  for (const json &each : array) {
    auto id = wholeOf(each, 0, std::numeric_limits<i32>::max());
    if (!id)
      return std::nullopt;
    ids.push_back(i32(*id));
  }
  return ids;
}

ApiResult<Prompt> encodeText(std::string text, bool parseSpecial,
                             const Tokenizer &tokenizer) {
  if (parseSpecial && tokenizer.spellsBos(text))
    spdlog::warn("a prompt begins with {}, which the server would have added: "
                 "it is there once",
                 runtime::quoted(tokenizer.tokenBytes(tokenizer.spec().bosId)));
  auto ids = tokenizer.encode(
      text, {.addSpecial = true, .parseSpecial = parseSpecial});
  if (!ids)
    return tl::unexpected(toApiError(ids.error(), "prompt"));
  if (ids->empty())
    return refuse("prompt", "the prompt is empty, and this model has no begin "
                            "token to start from");
  return Prompt{.ids = std::move(*ids), .text = std::move(text)};
}

namespace {

/// A text, or a list of ids.
ApiResult<Prompt> readPrompt(const json &value, bool parseSpecial,
                             const Tokenizer &tokenizer) {
  if (value.is_string())
    return encodeText(value.get<std::string>(), parseSpecial, tokenizer);
  auto ids = idsOf(value);
  if (!ids)
    return refuse("prompt", "'prompt' must be a string, a list of strings, a "
                            "list of token ids or a list of such lists");
  if (ids->empty())
    return refuse("prompt", "'prompt' is an empty list");
  return Prompt{.ids = std::move(*ids)};
}

} // namespace

ApiResult<std::vector<Prompt>>
readPrompts(const json &prompt, bool parseSpecial, const Tokenizer &tokenizer) {
  if (prompt.is_null())
    return refuse("prompt", "'prompt' is missing", "missing_parameter");
  bool isList =
      prompt.is_array() && !prompt.empty() && !prompt.front().is_number();
  std::vector<Prompt> prompts;
  for (size_t i = 0; i < (isList ? prompt.size() : 1); ++i) {
    auto read =
        readPrompt(isList ? prompt[i] : prompt, parseSpecial, tokenizer);
    if (!read)
      return tl::unexpected(read.error());
    prompts.push_back(std::move(*read));
  }
  return prompts;
}

namespace {

/// What a message says, as one text.
ApiResult<std::string> contentOf(const json &content,
                                 const std::string &where) {
  if (content.is_null())
    return std::string();
  if (content.is_string())
    return content.get<std::string>();
  if (!content.is_array())
    return refuse(where, fmt::format("'{}' must be a string or a list of "
                                     "parts",
                                     where));
  std::string joined;
  for (const json &part : content) {
    std::string type =
        part.is_object() && part.contains("type") && part["type"].is_string()
            ? part["type"].get<std::string>()
            : std::string();
    if (type != "text" || !part.contains("text") || !part["text"].is_string())
      return refuse(where,
                    type.empty() || type == "text"
                        ? fmt::format("'{}' has a part that is not "
                                      "{{\"type\": \"text\", \"text\": …}}",
                                      where)
                        : fmt::format("'{}' has a part of type {}; this model "
                                      "reads text only",
                                      where, runtime::quoted(type)),
                    "unsupported_content");
    joined += part["text"].get_ref<const std::string &>();
  }
  return joined;
}

/// A message as it comes.
struct Message {
  std::string role, name, toolCallId;
  json content = nullptr;
};

ApiResult<nlohmann::ordered_json> readMessage(const json &message,
                                              const std::string &where) {
  static const std::vector<Parameter<Message>> table = {
      {"role", text(&Message::role)},
      {"content", raw(&Message::content)},
      {"name", text(&Message::name)},
      {"tool_call_id", text(&Message::toolCallId)},
      refused<Message>("refusal"),
      refused<Message>("audio"),
      refused<Message>("tool_calls", {json::array()}),
      refused<Message>("function_call"),
      // What clients hand back of an answer without saying anything by it.
      refused<Message>("annotations", {json::array()}),
      // Ollama's.
      refused<Message>("images", {json::array()}),
      refused<Message>("thinking", {""}),
      {"tool_name", text(&Message::name)},
  };
  if (!message.is_object())
    return refuse(where, fmt::format("'{}' must be an object", where));
  Message read;
  if (auto done = readParameters<Message>(message, table, read, where + ".");
      !done)
    return tl::unexpected(done.error());
  if (read.role.empty())
    return refuse(where + ".role", fmt::format("'{}.role' is missing", where),
                  "missing_parameter");
  if (read.role == "function")
    return refuse(where + ".role",
                  "messages of role 'function' are not supported");
  auto content = contentOf(read.content, where + ".content");
  if (!content)
    return tl::unexpected(content.error());
  if (!message.contains("content"))
    return refuse(where + ".content",
                  fmt::format("'{}.content' is missing", where),
                  "missing_parameter");
  // OpenAI's newer name; templates know the older one.
  nlohmann::ordered_json shown = {
      {"role", read.role == "developer" ? "system" : read.role},
      {"content", std::move(*content)}};
  if (!read.name.empty())
    shown["name"] = read.name;
  if (!read.toolCallId.empty())
    shown["tool_call_id"] = read.toolCallId;
  return shown;
}

} // namespace

ApiResult<Prompt> readMessages(const json &messages, const TextModel &model) {
  if (messages.is_null())
    return refuse("messages", "'messages' is missing", "missing_parameter");
  if (!messages.is_array() || messages.empty())
    return refuse("messages", "'messages' must be a list of messages");
  auto shown = nlohmann::ordered_json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    auto message = readMessage(messages[i], fmt::format("messages[{}]", i));
    if (!message)
      return tl::unexpected(message.error());
    shown.push_back(std::move(*message));
  }
  if (!model.hasChatTemplate())
    return refuse("messages",
                  "this model has no chat template and can only complete a "
                  "plain prompt: use /v1/completions, or serve a model file "
                  "with a template (tokenizer.chat_template)",
                  "no_chat_template");
  auto ids = model.encodeChat(shown);
  if (!ids)
    return tl::unexpected(toApiError(ids.error(), "messages"));
  if (ids->empty())
    return refuse("messages",
                  "the chat template makes nothing of the messages");
  return Prompt{.ids = std::move(*ids), .text = shown.dump()};
}

} // namespace lathe::runtime::serve

/// \file
/// Calls as OpenAI's clients make them (OpenAI API reference, "Create chat
/// completion", "Create completion"), with the extensions that vLLM's clients
/// know.
#ifndef LATHE_RUNTIME_SERVE_OPENAI_OPENAIREQUEST_H
#define LATHE_RUNTIME_SERVE_OPENAI_OPENAIREQUEST_H

#include "runtime/serve/Api.h"
#include "runtime/serve/ApiError.h"
#include "runtime/serve/Call.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lathe::runtime::serve {

/// A call with what only this API knows.
struct OpenAiRequest : Call {
  std::string model = {};
  nlohmann::json prompt = nullptr;   ///< Of completions.
  nlohmann::json messages = nullptr; ///< Of chats.
  std::optional<u32> maxCompletionTokens = std::nullopt;
  std::optional<u32> bestOf = std::nullopt;
  std::optional<u32> completionLogProbs = std::nullopt;
  bool hasStreamOptions = false;
  bool includeUsage = false;
  bool continuousUsage = false; ///< Counts only with includeUsage, as vLLM's.
  bool parseSpecial = true;     ///< A prompt's text may spell control tokens.
};

/// Reads and checks the body of a call, and encodes its prompts.
ApiResult<OpenAiRequest> readChat(const nlohmann::json &body,
                                  const ServedModel &model);
ApiResult<OpenAiRequest> readCompletion(const nlohmann::json &body,
                                        const ServedModel &model);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_OPENAI_OPENAIREQUEST_H

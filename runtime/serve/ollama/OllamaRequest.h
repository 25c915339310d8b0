/// \file
/// Calls as Ollama's clients make them (Ollama, docs/api.md).
#ifndef LATHE_RUNTIME_SERVE_OLLAMA_OLLAMAREQUEST_H
#define LATHE_RUNTIME_SERVE_OLLAMA_OLLAMAREQUEST_H

#include "runtime/serve/Api.h"
#include "runtime/serve/ApiError.h"
#include "runtime/serve/Call.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lathe::runtime::serve {

/// A call with what only this API knows. Without prompts, it only asks whether
/// the model is there.
struct OllamaRequest : Call {
  std::string model = {};
  nlohmann::json messages = nullptr; ///< Of chats.
  std::string prompt = {};           ///< Of plain generations.
  std::string system = {};
  bool raw = false; ///< The prompt is not put into the chat template.
  // Of the options:
  std::optional<i64> context = std::nullopt;
  i64 penaltyWindow = 64; ///< -1: all tokens; 0: none.
};

/// Reads and checks the body of a call, and encodes its prompt.
ApiResult<OllamaRequest> readOllamaChat(const nlohmann::json &body,
                                        const ServedModel &model);
ApiResult<OllamaRequest> readOllamaGenerate(const nlohmann::json &body,
                                            const ServedModel &model);

/// Errors: 404, unless it is the served model's name; ":latest" may follow it.
ApiResult<void> checkOllamaName(const std::string &name,
                                const ServedModel &model);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_OLLAMA_OLLAMAREQUEST_H

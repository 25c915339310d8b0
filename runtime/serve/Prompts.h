/// \file
/// Prompts of calls as ids: from text, from ids, from conversations.
#ifndef LATHE_RUNTIME_SERVE_PROMPTS_H
#define LATHE_RUNTIME_SERVE_PROMPTS_H

#include "runtime/api/TextModel.h"
#include "runtime/serve/ApiError.h"
#include "runtime/serve/Call.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lathe::runtime::serve {

/// The ids of a JSON array, if it holds nothing else.
std::optional<std::vector<i32>> idsOf(const nlohmann::json &array);

/// A plain text as a prompt. It begins with the begin token once if the model
/// wants it; a text that spells it itself is warned of in the log. Errors: 400
/// if it comes to no token at all.
ApiResult<Prompt> encodeText(std::string text, bool parseSpecial,
                             const Tokenizer &tokenizer);

/// OpenAI's "prompt": a text, a list of texts, ids or a list of lists of ids.
/// Ids are taken as they are.
ApiResult<std::vector<Prompt>> readPrompts(const nlohmann::json &prompt,
                                           bool parseSpecial,
                                           const Tokenizer &tokenizer);

/// A conversation by the model's chat template. Contents are texts or lists of
/// text parts, which are joined. Nothing in them becomes a control token.
ApiResult<Prompt> readMessages(const nlohmann::json &messages,
                               const TextModel &model);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_PROMPTS_H

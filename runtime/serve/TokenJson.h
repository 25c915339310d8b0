/// \file
/// Tokens with log-probabilities as JSON, as OpenAI's chats and Ollama show
/// them.
#ifndef LATHE_RUNTIME_SERVE_TOKENJSON_H
#define LATHE_RUNTIME_SERVE_TOKENJSON_H

#include "runtime/serve/AnswerText.h"

#include <span>
#include <string>

namespace lathe::runtime::serve {

/// Appends [{"token","logprob","bytes","top_logprobs":[{"token","logprob",
/// "bytes"}]}]. In "token", U+FFFD stands for what is no character.
void appendEntries(std::string &out, const Tokenizer &tokenizer,
                   std::span<const TokenEntry> entries);

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_TOKENJSON_H

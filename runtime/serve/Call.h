/// \file
/// What a client asks for, whichever API it speaks.
#ifndef LATHE_RUNTIME_SERVE_CALL_H
#define LATHE_RUNTIME_SERVE_CALL_H

#include "runtime/sample/Sampler.h"

#include <optional>
#include <string>
#include <vector>

namespace lathe::runtime::serve {

/// One prompt of a call.
struct Prompt {
  std::vector<i32> ids;
  /// As it came, or a conversation as JSON; empty if it came as ids.
  std::string text = {};
};

/// Prompts, and how to go on from each of them.
struct Call {
  std::vector<Prompt> prompts = {};
  SamplerOptions sampling = {};
  /// Nothing: a random one.
  std::optional<u64> seed = std::nullopt;
  /// Nothing: as many as the context has room for.
  std::optional<u32> maxTokens = std::nullopt;
  u32 answers = 1; ///< Of each prompt.
  std::vector<std::string> stops = {};
  std::vector<i32> stopTokens = {};
  bool includeStop = false; ///< Answers end with the stop string.
  bool ignoreEnd = false;   ///< The model's own end tokens do not end them.
  bool echo = false;        ///< Answers begin with the prompt.
  /// Log-probabilities of the answer's tokens (and the echoed ones), and of so
  /// many likeliest ones besides.
  bool logProbs = false;
  u32 topLogProbs = 0;
  i32 priority = 0;
  std::string cacheSalt = {};
  bool stream = false;
};

} // namespace lathe::runtime::serve

#endif // LATHE_RUNTIME_SERVE_CALL_H

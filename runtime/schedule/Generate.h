/// \file
/// The generation loop of a single session.
#ifndef LATHE_RUNTIME_SCHEDULE_GENERATE_H
#define LATHE_RUNTIME_SCHEDULE_GENERATE_H

#include "runtime/sample/Sampler.h"
#include "runtime/schedule/GeneratedToken.h"
#include "runtime/schedule/Session.h"
#include "runtime/support/Result.h"

#include <atomic>
#include <functional>
#include <span>
#include <vector>

namespace lathe::runtime {

struct GenerateOptions {
  SamplerOptions sampling = {};
  /// Most tokens to generate; 0 only evaluates the prompt.
  u32 maxTokens = ~0u;
  /// Ids that end the generation; they are not part of the answer.
  std::vector<i32> stopTokens = {};
  /// Gives the visitor the logits of each token; costs the time to compute them
  /// all.
  bool showLogits = false;
  /// Set by another thread or a signal handler to end soon; may be null.
  const std::atomic<bool> *cancel = nullptr;
};

/// Sees each token at once; false ends the generation (a stop string matched).
using TokenVisitor = std::function<bool(const GeneratedToken &token)>;

enum class FinishReason {
  Stop,      ///< A stop token, or the visitor's wish.
  Length,    ///< maxTokens, or the context is full.
  Cancelled, ///< GenerateOptions::cancel.
};

/// What was generated, and how fast.
struct Generation {
  std::vector<i32> tokens;
  FinishReason reason = FinishReason::Length;
  /// Tokens of the prompt, and how many of them had to be evaluated.
  u32 promptTokens = 0;
  u32 prefillTokens = 0;
  /// Until the first token is picked, or the prompt evaluated if none is.
  f64 prefillSeconds = 0;
  /// Steps after the first token, with their sampling; without the visitor's
  /// time.
  u32 decodeSteps = 0;
  f64 decodeSeconds = 0;

  /// 0 if nothing was evaluated.
  f64 prefillTokensPerSecond() const {
    return prefillSeconds > 0 ? prefillTokens / prefillSeconds : 0;
  }
  f64 decodeTokensPerSecond() const {
    return decodeSeconds > 0 ? decodeSteps / decodeSeconds : 0;
  }
};

/// Makes the session's sequence equal `prompt` (ids of the whole conversation;
/// what the session holds of it already is not evaluated again) and generates
/// from there. Afterwards the session holds the prompt and the answer, perhaps
/// without the answer's last token. Errors: InvalidInput (an empty prompt, one
/// longer than the context, ids or sampling options out of range), those of
/// Sampler::sample.
Result<Generation> generate(Session &session, std::span<const i32> prompt,
                            const GenerateOptions &options,
                            const TokenVisitor &visitor = nullptr);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_GENERATE_H

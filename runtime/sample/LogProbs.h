/// \file
/// Log-probabilities of a row of logits.
#ifndef LATHE_RUNTIME_SAMPLE_LOGPROBS_H
#define LATHE_RUNTIME_SAMPLE_LOGPROBS_H

#include "runtime/sample/Pick.h"
#include "runtime/support/Result.h"

#include <span>
#include <vector>

namespace lathe::runtime {

/// A token and the natural logarithm of its probability; -infinity if the
/// model rules it out.
struct TokenLogProb {
  i32 token;
  f64 logprob;
};

/// The softmax over a row of logits as the model gives them: no temperature, no
/// penalties, no filters. Refers to the row, which must outlive it.
class LogProbs {
public:
  /// Errors: Internal (a logit is NaN or +infinity, or all are -infinity).
  static Result<LogProbs> of(std::span<const f32> row);

  /// ln p(token) = logit - max - ln(sumOfExp), in f64.
  f64 of(u32 token) const { return f64(row[token]) - f64(maximum) - logSum; }

  /// The `count` likeliest tokens, likeliest first, ties by the lower id;
  /// fewer if the rest is ruled out.
  std::vector<TokenLogProb> top(u32 count) const;

private:
  LogProbs() = default;

  std::span<const f32> row;
  f32 maximum = 0;
  f64 logSum = 0;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SAMPLE_LOGPROBS_H

/// \file
/// Picking a token from a row of logits: the definition that every device path
/// must equal bit for bit.
///
/// In order:
/// 1. Edits, two roundings:
///    logit' = (logit > 0 ? logit / factor : logit * factor) + addend.
/// 2. Tokens whose bit in `allowed` is 0, and those at -infinity, are out.
/// 3. Temperature 0: the largest logit wins, ties go to the lowest id. Done.
/// 4. Candidates are ordered by (logit falling, id rising):
///    top-k keeps the first k;
///    top-p keeps the shortest prefix of these whose exp(logit - max), summed
///    in this order in f64, reaches topP * Z, where Z is sumOfExp() over the
///    tokens left by top-k;
///    min-p keeps those with exp(logit - max) >= minP. The first one always
///    stays.
/// 5. The candidate with the largest logit / temperature + noise wins, in f64;
///    ties go to the lowest id. The noise is noiseOf(seed, position, token).
#ifndef LATHE_RUNTIME_SAMPLE_PICK_H
#define LATHE_RUNTIME_SAMPLE_PICK_H

#include "kernels/abi/StepArgs.h"
#include "runtime/support/Result.h"

#include <span>
#include <vector>

namespace lathe::runtime {

/// A token and its logit.
struct Candidate {
  f32 logit;
  u32 token;

  /// The order of candidates: logit falling, id rising.
  bool operator<(const Candidate &other) const {
    return logit != other.logit ? logit > other.logit : token < other.token;
  }
};

/// Room for picks from rows of one length; kept between picks so that they do
/// not allocate once warm. One thread at a time.
class PickScratch {
public:
  std::vector<f32> edited;
  std::vector<Candidate> candidates;
};

/// Picks a token from the logits of one row as the file comment says, with
/// top-p off at `topP` = 1. `args.edits` name each token at most once. Returns
/// the token and its edited logit. Errors: Internal (a logit is NaN or
/// +infinity), InvalidInput (no token is allowed).
Result<PickResult> pickFromLogits(std::span<const f32> row,
                                  const PickArgs &args, PickScratch &scratch,
                                  f32 topP = 1);

/// The `count` first candidates of a row in order, fewer if fewer are above
/// -infinity. `candidates` is overwritten.
void selectTop(std::span<const f32> row, u32 count,
               std::vector<Candidate> &candidates);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SAMPLE_PICK_H

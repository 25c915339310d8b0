/// \file
/// How many tokens are worth drafting.
#ifndef LATHE_RUNTIME_SPECULATE_DRAFTLENGTH_H
#define LATHE_RUNTIME_SPECULATE_DRAFTLENGTH_H

#include "runtime/speculate/Proposer.h"
#include "runtime/speculate/StepTimes.h"

#include <array>
#include <span>
#include <vector>

namespace lathe::runtime {

/// How often drafted tokens are right, for each certainty of a proposer: the
/// share of right ones among those whose predecessors were right. Old drafts
/// count less and less.
class Acceptance {
public:
  /// `accepted` tokens of a draft were right; `rejected`: the next was wrong.
  void add(u32 certainty, u32 accepted, bool rejected);

  /// The estimate, with what is known of others as if seen `weight` times.
  f64 of(u32 certainty, f64 others, f64 weight) const;

  /// So many tokens came without a draft: what is known fades, slowly, so that
  /// a request for which no draft was worth it gets another try.
  void fade(u32 tokens);

private:
  struct Seen {
    f64 right = 0, wrong = 0;
  };
  std::array<Seen, Proposer::certainties> seen;
};

/// One sequence that a draft could be made or checked for.
struct DraftChoice {
  f64 acceptance; ///< Of each token, if those before it were right; [0, 1].
  u32 most;       ///< Tokens.
  u32 length = 0; ///< Chosen.
};

/// What drafting itself costs.
struct DraftCost {
  f64 perToken = 0; ///< Seconds for one more token of all drafts together.
};

/// Chooses the lengths for which a step yields most per second: the expected
/// tokens (1 + a + a^2 + ... for each sequence, one for each other row) over
/// what the step of all rows is expected to take, draft included (Leviathan et
/// al., 2023, "Fast Inference from Transformers via Speculative Decoding",
/// section 3.3, with measured costs and for several sequences). `rows`: of the
/// step without drafts, > 0; `rowsLeft`: most drafted tokens of all sequences.
void chooseDraftLengths(std::span<DraftChoice> choices, u32 rows, u32 rowsLeft,
                        const StepTimes &times, const DraftCost &cost);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SPECULATE_DRAFTLENGTH_H

/// \file
/// A scheduler's life with everything that can happen to it, from one seed.
#ifndef LATHE_TESTS_SIM_SIMULATION_H
#define LATHE_TESTS_SIM_SIMULATION_H

#include "kernels/abi/Types.h"

#include <string>

namespace lathe::tests {

/// What a simulation came to.
struct SimOutcome {
  /// What broke an invariant, with the step; empty if nothing did.
  std::string problem;
  /// Of all that the requests were told, in order.
  u64 trace = 0;
  u64 steps = 0, requests = 0, tokens = 0, preemptions = 0, cachedTokens = 0,
      cancels = 0, drafted = 0, accepted = 0;
  /// Of them, those of a draft model that draws what the model draws.
  u64 modelDrafted = 0, modelAccepted = 0;
};

/// Runs the scheduler over seeded requests, cancels, deadlines, failing steps
/// and memory pressure, in half of all seeds with drafts of some quality, until
/// all is over, and checks after each step that
/// - every page is owned as counted, and no row saw or wrote another's;
/// - each answer gets the tokens that it would get alone, none lost, none
///   doubled, and exactly one end;
/// - requests start in their order, and each step with work evaluates a row.
/// The same seed gives the same trace.
SimOutcome simulate(u64 seed);

} // namespace lathe::tests

#endif // LATHE_TESTS_SIM_SIMULATION_H

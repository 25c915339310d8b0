// The scheduler under many seeds. LATHE_SIM_SEEDS=FIRST:COUNT runs others than
// the usual ones (tests/sim/long runs a million); a seed alone,
// LATHE_SIM_SEEDS= SEED:1, repeats what it found.

#include "tests/sim/Simulation.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <iostream>
#include <string>

using namespace lathe;
using namespace lathe::tests;

namespace {

struct Seeds {
  u64 first = 0, count = 5000;
};

Seeds wantedSeeds() {
  Seeds seeds;
  if (const char *text = std::getenv("LATHE_SIM_SEEDS")) {
    std::string all = text;
    size_t colon = all.find(':');
    seeds.first = std::stoull(all);
    seeds.count =
        colon == std::string::npos ? 1 : std::stoull(all.substr(colon + 1));
  }
  return seeds;
}

TEST(Simulation, HoldsForManySeeds) {
  Seeds seeds = wantedSeeds();
  SimOutcome sum;
  for (u64 seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    SimOutcome outcome = simulate(seed);
    ASSERT_EQ(outcome.problem, "")
        << "seed " << seed << "; LATHE_SIM_SEEDS=" << seed << ":1 repeats it";
    sum.steps += outcome.steps;
    sum.requests += outcome.requests;
    sum.tokens += outcome.tokens;
    sum.preemptions += outcome.preemptions;
    sum.cachedTokens += outcome.cachedTokens;
    sum.cancels += outcome.cancels;
    sum.drafted += outcome.drafted;
    sum.accepted += outcome.accepted;
    sum.modelDrafted += outcome.modelDrafted;
    sum.modelAccepted += outcome.modelAccepted;
  }
  std::cout << seeds.count << " seeds: " << sum.steps << " steps, "
            << sum.requests << " requests, " << sum.tokens << " tokens, "
            << sum.preemptions << " preemptions, " << sum.cachedTokens
            << " cached tokens, " << sum.cancels << " cancels, " << sum.accepted
            << " of " << sum.drafted << " drafted tokens\n";
  // A simulation in which nothing happens would prove nothing.
  if (seeds.count >= 1000) {
    EXPECT_GT(sum.preemptions, seeds.count);
    EXPECT_GT(sum.cachedTokens, 10 * seeds.count);
    EXPECT_GT(sum.cancels, seeds.count / 2);
    EXPECT_GT(sum.accepted, 10 * seeds.count);
    EXPECT_LT(sum.accepted, sum.drafted / 4 * 3);
    // What is not accepted is behind an answer's end.
    EXPECT_GT(sum.modelAccepted, seeds.count);
    EXPECT_GT(sum.modelAccepted, sum.modelDrafted / 10 * 9)
        << "of " << sum.modelDrafted;
  }
}

TEST(Simulation, RepeatsItself) {
  for (u64 seed = 0; seed < 50; ++seed)
    ASSERT_EQ(simulate(seed).trace, simulate(seed).trace) << "seed " << seed;
}

} // namespace

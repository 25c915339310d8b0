/// \file
/// The parts of traced steps against numbers computed by hand.
#include "runtime/schedule/StepProfile.h"

#include <gtest/gtest.h>

namespace lathe::tests {
namespace {

using namespace runtime;

/// Two threads; `body` has two launches, `head` one.
StepTrace exampleTrace() {
  constexpr u64 far = u64(1) << 60; // Differences of stamps keep every tick.
  StepTrace trace = {.begin = 0,
                     .end = 100,
                     .body = {10, 30, 12, 22, 33, 43, 35, 51},
                     .head = {60, 90, 62, 92}};
  trace.begin += far;
  trace.end += far;
  for (std::vector<u64> *stamps : {&trace.body, &trace.head})
    for (u64 &stamp : *stamps)
      stamp += far;
  return trace;
}

TEST(StepProfile, PartsOfAStepAddUp) {
  StepTime step = partsOf(exampleTrace(), 2);
  EXPECT_EQ(step.wall, 100);
  ASSERT_EQ(step.launches.size(), 3u);
  // Spans of 20 and 10; then 3 and 13 up to the next launch, of which the
  // faster thread waited 5 on average for the slower.
  EXPECT_EQ(step.launches[0].slowest, 20);
  EXPECT_EQ(step.launches[0].mean, 15);
  EXPECT_EQ(step.launches[0].after, 8 - 5);
  EXPECT_EQ(step.launches[1].slowest, 16);
  EXPECT_EQ(step.launches[1].mean, 13);
  EXPECT_EQ(step.launches[1].after, 0);
  EXPECT_EQ(step.launches[2].slowest, 30);
  EXPECT_EQ(step.launches[2].mean, 30);
  EXPECT_EQ(step.outside, 100 - (20 + 3) - 16 - 30);
}

TEST(StepProfile, TypicalStepIsTheMeanOfTheMiddleHalf) {
  std::vector<StepTime> steps;
  for (f64 wall : {1000., 4., 2., 3.})
    steps.push_back({.wall = wall,
                     .outside = wall / 2,
                     .launches = {{wall / 4, wall / 8, wall / 4}}});
  StepTime typical = typicalStep(steps, 10);
  EXPECT_EQ(typical.wall, 35);
  EXPECT_EQ(typical.outside, 17.5);
  ASSERT_EQ(typical.launches.size(), 1u);
  EXPECT_EQ(typical.launches[0].slowest, 8.75);
  EXPECT_EQ(typical.launches[0].mean, 4.375);
  EXPECT_EQ(typical.launches[0].after, 8.75);
}

TEST(StepProfile, OneStepIsItsOwnTypicalStep) {
  std::vector<StepTime> steps = {partsOf(exampleTrace(), 2)};
  EXPECT_EQ(typicalStep(steps, 1).wall, 100);
}

} // namespace
} // namespace lathe::tests

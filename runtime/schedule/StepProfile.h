/// \file
/// Where the time of traced steps went: launch by launch, and between them.
#ifndef LATHE_RUNTIME_SCHEDULE_STEPPROFILE_H
#define LATHE_RUNTIME_SCHEDULE_STEPPROFILE_H

#include "kernels/abi/Types.h"

#include <span>
#include <vector>

namespace lathe::runtime {

/// The time stamps of one step: of the whole, and as StepArgs::trace has them
/// [launches][threads][2], of its calls of `body` and `head`.
struct StepTrace {
  u64 begin = 0;
  u64 end = 0;
  std::vector<u64> body;
  std::vector<u64> head;
};

/// How long one launch took, in time stamps or seconds.
struct LaunchTime {
  /// Of the thread that took longest.
  f64 slowest = 0;
  /// Of all threads on average: `slowest`, if the work were split evenly.
  f64 mean = 0;
  /// From its end to the next launch's start, on average over the threads and
  /// without the wait for the slowest one: barriers, and threads that wake up
  /// late. 0 for the last launch of an entry point. A little below 0 where the
  /// slowest thread of this launch is a fast one in the next and no barrier
  /// lies between them.
  f64 after = 0;
};

/// Of a step: wall = launches' slowest + launches' after + outside.
struct StepTime {
  f64 wall = 0;
  /// Everything but the launches and what lies between them: filling the
  /// batch, waking the team, the entry points' last barriers.
  f64 outside = 0;
  std::vector<LaunchTime> launches; ///< Those of `body`, then those of `head`.
};

/// The parts of one step, in time stamps; `threads` > 0.
StepTime partsOf(const StepTrace &trace, u32 threads);

/// The typical step of several with as many launches each (at least one step):
/// the mean of the middle half by wall time, so that its parts still add up,
/// multiplied by `unit`. Sorts `steps`.
StepTime typicalStep(std::span<StepTime> steps, f64 unit);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_STEPPROFILE_H

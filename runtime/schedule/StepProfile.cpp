#include "runtime/schedule/StepProfile.h"

#include <algorithm>
#include <cassert>

namespace lathe::runtime {
namespace {

/// Appends the launches of one entry point.
void addEntry(std::span<const u64> stamps, u32 threads, StepTime &step) {
  size_t launches = stamps.size() / (size_t(threads) * 2);
  auto at = [&](size_t launch, u32 thread, u32 end) {
    return stamps[(launch * threads + thread) * 2 + end];
  };
  for (size_t i = 0; i < launches; ++i) {
    LaunchTime time;
    f64 gaps = 0;
    for (u32 thread = 0; thread < threads; ++thread) {
      // Differences first: stamps themselves need all 64 bits.
      f64 span = f64(at(i, thread, 1) - at(i, thread, 0));
      time.slowest = std::max(time.slowest, span);
      time.mean += span / threads;
      if (i + 1 < launches)
        gaps += f64(at(i + 1, thread, 0) - at(i, thread, 1)) / threads;
    }
    if (i + 1 < launches)
      time.after = gaps - (time.slowest - time.mean);
    step.launches.push_back(time);
  }
}

} // namespace

StepTime partsOf(const StepTrace &trace, u32 threads) {
  StepTime step;
  step.wall = f64(trace.end - trace.begin);
  addEntry(trace.body, threads, step);
  addEntry(trace.head, threads, step);
  step.outside = step.wall;
  for (const LaunchTime &launch : step.launches)
    step.outside -= launch.slowest + launch.after;
  return step;
}

StepTime typicalStep(std::span<StepTime> steps, f64 unit) {
  assert(!steps.empty());
  std::ranges::sort(steps, {}, &StepTime::wall);
  size_t skipped = steps.size() / 4;
  auto middle = steps.subspan(skipped, steps.size() - 2 * skipped);
  f64 weight = unit / f64(middle.size());
  StepTime typical;
  typical.launches.resize(middle.front().launches.size());
  for (const StepTime &step : middle) {
    typical.wall += step.wall * weight;
    typical.outside += step.outside * weight;
    for (size_t i = 0; i < typical.launches.size(); ++i) {
      typical.launches[i].slowest += step.launches[i].slowest * weight;
      typical.launches[i].mean += step.launches[i].mean * weight;
      typical.launches[i].after += step.launches[i].after * weight;
    }
  }
  return typical;
}

} // namespace lathe::runtime

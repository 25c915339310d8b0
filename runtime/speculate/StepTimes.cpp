#include "runtime/speculate/StepTimes.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace lathe::runtime {

/// What an unknown row costs at first, as a share of the step: little, so that
/// it is tried.
static constexpr f64 guessedSlope = 0.05;
/// Shares of a surprise that the common factor and the count's own average
/// follow, and the largest surprise: others are stalls.
static constexpr f64 factorRate = 0.1, ownRate = 0.2, surpriseMost = 2;

u32 StepTimes::pointOf(u32 rows) {
  if (rows <= exactRows)
    return rows - 1;
  // The doubling, and its eighth.
  u32 shift = u32(std::bit_width(rows)) - 4;
  u32 point = exactRows + (shift - 2) * 8 + (rows >> shift) - 8;
  return std::min(point, points - 1);
}

void StepTimes::add(u32 rows, f64 seconds) {
  assert(rows != 0);
  if (seconds <= 0)
    return;
  ++count;
  Point &point = known[pointOf(rows)];
  point.measured = count;
  if (point.time == 0) {
    point.rows = rows;
    point.time = seconds / factor;
    return;
  }
  f64 surprise = std::clamp(seconds / (factor * point.time), 1 / surpriseMost,
                            surpriseMost);
  factor *= std::pow(surprise, factorRate);
  point.time *= std::pow(surprise, ownRate);
  point.rows += ownRate * (rows - point.rows);
}

f64 StepTimes::of(u32 rows) const {
  assert(rows != 0);
  u32 own = pointOf(rows);
  const Point *below = nullptr, *above = nullptr, *second = nullptr;
  for (u32 i = own + 1; i-- != 0 && !second;)
    if (known[i].time != 0)
      (below ? second : below) = &known[i];
  for (u32 i = own + 1; i < points && !above; ++i)
    if (known[i].time != 0)
      above = &known[i];
  if (!below && !above)
    return 1 + guessedSlope * (rows - 1);
  if (below && rows <= below->rows)
    return factor * below->time;
  f64 time;
  if (below && above) {
    f64 share = (rows - below->rows) / (above->rows - below->rows);
    time = below->time + share * (above->time - below->time);
  } else if (below) {
    f64 slope = second ? std::max((below->time - second->time) /
                                      (below->rows - second->rows),
                                  0.0)
                       : guessedSlope * below->time;
    time = below->time + slope * (rows - below->rows);
  } else {
    time = above->time / (1 + guessedSlope * (above->rows - rows));
  }
  return factor * time;
}

bool StepTimes::isFresh(u32 rows, u64 steps) const {
  const Point &point = known[pointOf(rows)];
  return point.time != 0 && count - point.measured <= steps;
}

} // namespace lathe::runtime

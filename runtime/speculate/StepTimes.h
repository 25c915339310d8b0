/// \file
/// How long steps take, learnt from those that were made.
#ifndef LATHE_RUNTIME_SPECULATE_STEPTIMES_H
#define LATHE_RUNTIME_SPECULATE_STEPTIMES_H

#include "kernels/abi/Types.h"

#include <array>

namespace lathe::runtime {

/// An estimate of a step's time as a function of its rows. Exact counts of few
/// rows and ranges of many have a moving average each; what lies between known
/// ones is interpolated. All of them follow a common factor, so that what was
/// measured at another depth or clock rate stays comparable.
class StepTimes {
public:
  /// A step of `rows` > 0 rows took so long; times of 0 are ignored.
  void add(u32 rows, f64 seconds);

  /// Seconds; in arbitrary units while nothing is known.
  f64 of(u32 rows) const;

  /// The same, but 0 while nothing is known.
  f64 ofKnown(u32 rows) const { return count != 0 ? of(rows) : 0; }

  /// Whether this count of rows, or its range, was measured within the last
  /// `steps` steps.
  bool isFresh(u32 rows, u64 steps) const;

private:
  /// Up to so many rows have an average each; above, 8 per doubling.
  static constexpr u32 exactRows = 32;
  static constexpr u32 points = exactRows + 8 * 12;

  struct Point {
    f64 rows = 0; ///< Average.
    f64 time = 0; ///< In units of `factor`; 0: not known.
    u64 measured = 0;
  };
  static u32 pointOf(u32 rows);

  std::array<Point, points> known;
  f64 factor = 1;
  u64 count = 0;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SPECULATE_STEPTIMES_H

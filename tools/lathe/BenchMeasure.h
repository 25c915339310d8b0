/// \file
/// Timing one test of lathe bench.
#ifndef LATHE_TOOLS_LATHE_BENCHMEASURE_H
#define LATHE_TOOLS_LATHE_BENCHMEASURE_H

#include "runtime/schedule/Session.h"
#include "runtime/support/Result.h"
#include "tools/lathe/Terminal.h"

#include <chrono>
#include <string>
#include <vector>

namespace lathe::tools {

/// Prefill of `tokens`, or generation of so many, behind `depth` tokens.
struct BenchCase {
  std::string name;
  bool prefill;
  u32 tokens;
  u32 depth;
  bool kv; ///< False: each step evaluates the whole sequence again.
};

/// The median of repetitions, and between what they lie.
struct Spread {
  f64 median, min, max;
};

struct Measurement {
  BenchCase test;
  Spread tokensPerSecond;
  f64 seconds;  ///< Median, as the next.
  f64 lastStep; ///< Seconds; of generation.
};

/// Runs tests on one session, which they share so that a depth is evaluated
/// once. One thread at a time.
class BenchRunner {
public:
  /// `pick`: generation also chooses each token.
  BenchRunner(runtime::Session &session, bool pick)
      : session(session), pick(pick) {}

  /// Times `repetitions` runs, after one to warm up: a whole one, but only a
  /// few steps where each evaluates the whole sequence. Errors: those of
  /// Session::append; Environment if the user interrupts.
  runtime::Result<Measurement> measure(const BenchCase &test, u32 repetitions,
                                       Progress &progress);

private:
  using Clock = std::chrono::steady_clock;
  static constexpr u32 shortWarmUp = 4;

  static f64 secondsSince(Clock::time_point start) {
    return std::chrono::duration<f64>(Clock::now() - start).count();
  }

  i32 tokenAt(u32 position) const;
  std::vector<i32> tokensFrom(u32 position, u32 count) const;
  runtime::Result<void> prepare(u32 depth);
  runtime::Result<void> prefill(const BenchCase &test);
  runtime::Result<void> generate(const BenchCase &test, Progress &progress);

  runtime::Session &session;
  bool pick;
  f64 lastStep = 0;
};

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_BENCHMEASURE_H

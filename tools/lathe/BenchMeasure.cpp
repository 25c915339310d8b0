#include "tools/lathe/BenchMeasure.h"

#include "runtime/schedule/AnyToken.h"
#include "tools/lathe/Interrupt.h"

#include <algorithm>

using namespace lathe;
using namespace lathe::tools;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::Result;

namespace {

Spread spreadOf(std::vector<f64> values) {
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  f64 median = values.size() % 2 ? values[middle]
                                 : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

} // namespace

Result<Measurement> BenchRunner::measure(const BenchCase &test, u32 repetitions,
                                         Progress &progress) {
  std::vector<f64> seconds, speeds, lastSteps;
  for (u32 turn = 0; turn <= repetitions; ++turn) {
    progress.update(test.name, turn, repetitions + 1);
    if (auto ready = prepare(test.depth); !ready)
      return failFrom(ready);
    BenchCase now = test;
    if (turn == 0 && !test.kv)
      now.tokens = std::min(test.tokens, shortWarmUp);
    auto start = Clock::now();
    auto done = test.prefill ? prefill(now) : generate(now, progress);
    if (!done)
      return failFrom(done);
    f64 taken = secondsSince(start);
    if (turn != 0) {
      seconds.push_back(taken);
      speeds.push_back(test.tokens / taken);
      lastSteps.push_back(lastStep);
    }
    if (wasInterrupted())
      return fail(ErrorKind::Environment, "interrupted");
  }
  return Measurement{test, spreadOf(speeds), spreadOf(seconds).median,
                     spreadOf(lastSteps).median};
}

i32 BenchRunner::tokenAt(u32 position) const {
  return runtime::anyToken(0, position, session.vocab());
}

std::vector<i32> BenchRunner::tokensFrom(u32 position, u32 count) const {
  std::vector<i32> tokens(count);
  for (u32 i = 0; i < count; ++i)
    tokens[i] = tokenAt(position + i);
  return tokens;
}

Result<void> BenchRunner::prepare(u32 depth) {
  if (session.tokens().size() >= depth)
    return session.truncate(depth);
  if (auto empty = session.truncate(0); !empty)
    return empty;
  return session.append(tokensFrom(0, depth));
}

Result<void> BenchRunner::prefill(const BenchCase &test) {
  auto done = session.append(tokensFrom(test.depth, test.tokens));
  if (done)
    session.logits();
  return done;
}

Result<void> BenchRunner::generate(const BenchCase &test, Progress &progress) {
  i32 token = tokenAt(test.depth);
  for (u32 i = 0; i < test.tokens && !wasInterrupted(); ++i) {
    if (!test.kv)
      progress.update(test.name, i, test.tokens);
    auto start = Clock::now();
    if (auto done = session.append({&token, 1}); !done)
      return done;
    if (pick) {
      auto best = session.pick({});
      if (!best)
        return failFrom(best);
      // How much of the head a pick reads depends on the text, so it gets what
      // the model itself writes.
      token = best->token;
    } else {
      session.logits();
      token = tokenAt(test.depth + i + 1);
    }
    lastStep = secondsSince(start);
  }
  return {};
}

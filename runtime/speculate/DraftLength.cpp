#include "runtime/speculate/DraftLength.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace lathe::runtime {

/// An estimate rests on the last 1 / (1 - keep) drafts, and half of it is
/// forgotten in 70 tokens without one.
static constexpr f64 keep = 0.95, keepIdle = 0.99;

void Acceptance::add(u32 certainty, u32 accepted, bool rejected) {
  Seen &own = seen[certainty];
  own.right = keep * own.right + accepted;
  own.wrong = keep * own.wrong + (rejected ? 1 : 0);
}

f64 Acceptance::of(u32 certainty, f64 others, f64 weight) const {
  const Seen &own = seen[certainty];
  return (own.right + others * weight) / (own.right + own.wrong + weight);
}

void Acceptance::fade(u32 tokens) {
  f64 factor = std::pow(keepIdle, tokens);
  for (Seen &own : seen) {
    own.right *= factor;
    own.wrong *= factor;
  }
}

void chooseDraftLengths(std::span<DraftChoice> choices, u32 rows, u32 rowsLeft,
                        const StepTimes &times, const DraftCost &cost) {
  /// One more token of a sequence's draft: the chance that it is right.
  struct More {
    f64 chance;
    u32 choice, token;
  };
  std::vector<More> more;
  for (u32 i = 0; i < choices.size(); ++i) {
    choices[i].length = 0;
    f64 chance = 1;
    for (u32 token = 1; token <= choices[i].most; ++token) {
      chance *= choices[i].acceptance;
      more.push_back({chance, i, token});
    }
  }
  // The likeliest first; a sequence's own tokens stay in order.
  std::ranges::sort(more, [](const More &a, const More &b) {
    return std::tuple(-a.chance, a.token, a.choice) <
           std::tuple(-b.chance, b.token, b.choice);
  });
  if (more.size() > rowsLeft)
    more.resize(rowsLeft);
  f64 tokens = rows, best = tokens / times.of(rows);
  u32 longest = 0;
  size_t count = 0;
  for (size_t i = 0; i < more.size(); ++i) {
    tokens += more[i].chance;
    longest = std::max(longest, more[i].token);
    f64 rate = tokens / (times.of(rows + u32(i) + 1) + longest * cost.perToken);
    if (rate > best) {
      best = rate;
      count = i + 1;
    }
  }
  for (const More &each : std::span(more).first(count))
    choices[each.choice].length =
        std::max(choices[each.choice].length, each.token);
}

} // namespace lathe::runtime

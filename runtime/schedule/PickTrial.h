/// \file
/// Whether picking a token without all logits is worth it.
#ifndef LATHE_RUNTIME_SCHEDULE_PICKTRIAL_H
#define LATHE_RUNTIME_SCHEDULE_PICKTRIAL_H

#include "kernels/abi/StepArgs.h"

namespace lathe::runtime {

/// Watches how many logits the picks of one sequence had to compute exactly.
/// Where that is most of them, computing all is as fast: the coarse head has
/// two thirds of the head's bytes.
class PickTrial {
public:
  /// Whether to pick the next token so.
  bool isWorth() {
    if (fullPicks == 0)
      return true;
    --fullPicks;
    return false;
  }

  /// What such a pick came to, of a vocabulary of `vocab`.
  void learn(const PickResult &picked, u32 vocab) {
    if (u64(picked.exactGroups) * 16 > u64(vocab) / groupsMost)
      fullPicks = fullInTurn;
  }

private:
  /// More than one in so many logits is too many.
  static constexpr u32 groupsMost = 4;
  /// Then so many tokens are picked from all logits before the next try.
  static constexpr u32 fullInTurn = 16;

  u32 fullPicks = 0;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_PICKTRIAL_H

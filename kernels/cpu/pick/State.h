/// \file
/// What the threads of a pick share about one row, and the order of its
/// candidates (docs/numerics.md, "Picking a token").
#ifndef LATHE_KERNELS_CPU_PICK_STATE_H
#define LATHE_KERNELS_CPU_PICK_STATE_H

#include "kernels/cpu/simd/Simd.h"

namespace lathe::kernels::inline LATHE_ISA {

/// A token and its edited logit.
struct PickCandidate {
  f32 logit;
  i32 token;

  /// Logit falling, id rising.
  LATHE_INLINE bool isBefore(const PickCandidate &other) const {
    return logit != other.logit ? logit > other.logit : token < other.token;
  }
};

/// The first `limit` candidates of those offered, in order.
struct PickList {
  u32 limit;
  u32 count;
  PickCandidate items[maxPickTopK];

  bool isFull() const { return count == limit; }
  /// No logit below this gets in.
  f32 threshold() const {
    return isFull() ? items[count - 1].logit : -__builtin_inff();
  }

  /// Offering a candidate again changes nothing.
  void offer(PickCandidate candidate) {
    if (isFull() && !candidate.isBefore(items[count - 1]))
      return;
    u32 at = count;
    while (at > 0 && candidate.isBefore(items[at - 1]))
      --at;
    if (at > 0 && items[at - 1].token == candidate.token)
      return;
    u32 last = isFull() ? count - 1 : count;
    for (u32 i = last; i > at; --i)
      items[i] = items[i - 1];
    items[at] = candidate;
    count = last + 1;
  }
};

/// The draw that wins so far.
struct PickBest {
  f64 score;
  PickCandidate candidate;

  void clear() {
    score = -__builtin_inf();
    candidate = {-__builtin_inff(), -1};
  }
  void offer(f64 newScore, PickCandidate newCandidate) {
    bool wins = newScore > score ||
                (newScore == score &&
                 (candidate.token < 0 || newCandidate.token < candidate.token));
    if (wins)
      *this = {newScore, newCandidate};
  }
};

/// One row's part of the kernel's state buffer.
struct PickState {
  u32 lock;
  /// The row is left to the runtime.
  u32 isOpen;
  /// PickResult::exactGroups so far.
  u32 exactGroups;
  PickBest best;
  PickList list;
};
static_assert(sizeof(PickState) <= pickStateBytes);

/// For its lifetime no other thread is in the state.
class PickLock {
public:
  explicit PickLock(PickState &state) : state(state) {
    while (__atomic_exchange_n(&state.lock, 1, __ATOMIC_ACQUIRE) != 0)
      pauseThread();
  }
  ~PickLock() { __atomic_store_n(&state.lock, 0, __ATOMIC_RELEASE); }
  PickLock(const PickLock &) = delete;
  PickLock &operator=(const PickLock &) = delete;

private:
  PickState &state;
};

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_PICK_STATE_H

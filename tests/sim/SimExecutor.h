/// \file
/// A model for the simulation: as cheap as can be, but whoever evaluates it
/// with a wrong page, a missing row or a stale token gets other answers.
#ifndef LATHE_TESTS_SIM_SIMEXECUTOR_H
#define LATHE_TESTS_SIM_SIMEXECUTOR_H

#include "runtime/device/StepExecutor.h"

#include <string>
#include <vector>

namespace lathe::tests {

/// What a sequence's tokens come to: the state after a token depends on the
/// state before it and on the token.
u64 nextState(u64 before, i32 token);
/// Logits [vocab] that follow a state.
void logitsOf(u64 state, std::vector<f32> &logits, u32 vocab);

/// Keeps the state of each position in the pages of the KV cache, in each group
/// where the token's page is, and reads it back from there for the next token:
/// from every group that a model's attention would look at.
class SimExecutor : public runtime::StepExecutor {
public:
  /// Bytes of a page in each group: a state per token.
  static constexpr u64 pageBytes = pageTokens * sizeof(u64);

  SimExecutor(const Capacities &capacities, u32 vocab, runtime::KvCache &cache,
              bool picks);

  const Capacities &capacities() const override { return limits; }
  u32 vocab() const override { return words; }
  runtime::Result<void>
  step(std::span<const runtime::BatchSequence> batch) override;
  const f32 *head(std::span<const u32> rows) override;
  bool canPick() const override { return picks; }
  std::span<const PickResult> pick(std::span<const u32> rows,
                                   std::span<const PickArgs> args) override;
  void forEach(u32 count, const std::function<void(u32)> &work) override {
    for (u32 index = count; index-- != 0;) // In another order than rows have.
      work(index);
  }

  /// What was wrong with a batch, the first time; empty: nothing yet.
  const std::string &problem() const { return wrong; }

  /// The next step fails.
  void failNext() { fails = true; }

private:
  u64 *stateAt(const runtime::SequenceCache &sequence, u32 group, u32 position);
  void complain(const std::string &what);

  Capacities limits;
  u32 words;
  runtime::KvCache *cache;
  bool picks;
  bool fails = false;
  std::vector<u64> states;  ///< By row of the latest step.
  std::vector<bool> wanted; ///< Likewise.
  std::vector<f32> logits, row;
  std::vector<PickResult> picked;
  std::string wrong;
};

} // namespace lathe::tests

#endif // LATHE_TESTS_SIM_SIMEXECUTOR_H

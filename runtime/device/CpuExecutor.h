/// \file
/// Runs the steps of an engine's program on a team of CPU threads.
#ifndef LATHE_RUNTIME_DEVICE_CPUEXECUTOR_H
#define LATHE_RUNTIME_DEVICE_CPUEXECUTOR_H

#include "runtime/device/AttentionPlan.h"
#include "runtime/device/Memory.h"
#include "runtime/device/StepExecutor.h"
#include "runtime/device/StepProgram.h"
#include "runtime/device/ThreadTeam.h"
#include "runtime/kv/KvCache.h"

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace lathe::runtime {

/// Executes `body` over ragged batches and `head` or `pick` over rows of their
/// results.
/// After create() nothing allocates, locks or logs. One thread at a time; the
/// team, the KV cache and the engine must outlive it.
class CpuExecutor final : public StepExecutor {
public:
  /// Sizes and maps the arena. `kv` is null if and only if the program has no
  /// KV cache. Errors: Exhausted (the sizes overflow or the address space is
  /// full), Internal (inconsistent arguments).
  static Result<std::unique_ptr<CpuExecutor>>
  create(StepProgram program, const Capacities &capacities, ThreadTeam &team,
         KvCache *kv);

  /// Bytes that create() maps for these capacities, logits included; saturates
  /// at 2^64 - 1.
  static u64 arenaBytes(const StepProgram &program,
                        const Capacities &capacities, u32 threads);

  Result<void> step(std::span<const BatchSequence> batch) override {
    return step(batch, nullptr);
  }
  const f32 *head(std::span<const u32> rows) override {
    return head(rows, nullptr);
  }
  bool canPick() const override { return program.pick != nullptr; }
  std::span<const PickResult> pick(std::span<const u32> rows,
                                   std::span<const PickArgs> args) override {
    return pick(rows, args, nullptr);
  }
  void forEach(u32 count, const std::function<void(u32)> &work) override;
  const Capacities &capacities() const override { return limits; }
  u32 vocab() const override { return program.vocab; }

  /// The same with time stamps: `trace`, if not null, takes [launches of the
  /// entry point][threads][2] of them.
  Result<void> step(std::span<const BatchSequence> batch, u64 *trace);
  const f32 *head(std::span<const u32> rows, u64 *trace);
  std::span<const PickResult> pick(std::span<const u32> rows,
                                   std::span<const PickArgs> args, u64 *trace);

  /// The final hidden state [hidden] of a wanted row of the latest step.
  std::span<const f32> hidden(u32 row) const {
    return {hiddenStates + u64(row) * program.hidden, program.hidden};
  }

  const StepProgram &stepProgram() const { return program; }
  u32 threads() const { return team->threads(); }

private:
  CpuExecutor(StepProgram program, const Capacities &capacities,
              ThreadTeam &team, KvCache *kv);
  Result<void> checkBatch(std::span<const BatchSequence> batch) const;
  void fillBatch(std::span<const BatchSequence> batch);
  void planAttention();
  bool isWanted(u32 row) const;
  /// Copies rows of the latest step to the input of `head` and `pick`.
  void gatherRows(std::span<const u32> rows);
  void call(StepFunction function, u64 *trace);

  StepProgram program;
  Capacities limits;
  ThreadTeam *team;
  KvCache *kv;

  MemoryRegion arena;
  std::vector<u8 *> slots;
  f32 *hiddenStates = nullptr; ///< [T][H], in the arena as the next two.
  f32 *headInput = nullptr;    ///< [maxHeadRows][H]
  f32 *logits = nullptr;       ///< [maxHeadRows][vocab]

  std::array<PickResult, maxHeadRows> picked = {};

  std::vector<i32> tokens;
  std::vector<i32> positions;
  std::vector<u32> rowSequence;
  std::vector<u32> sequenceStarts;
  std::vector<SequenceRows> sequenceRows;
  std::vector<SequenceRows> wantedSequences; ///< The wanted ones of them.
  std::vector<RowRange> wantedRanges;
  std::vector<std::vector<PageId>> pageTables; ///< [group][S][stride]
  std::vector<KvGroupArgs> groupArgs;
  std::vector<AttentionPlan> plans; ///< One per group, as the next three.
  std::vector<AttentionPlan> wantedPlans;
  std::vector<AttentionWorkList> workLists;
  std::vector<AttentionWorkList> wantedLists;
  StepArgs args{};
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_DEVICE_CPUEXECUTOR_H

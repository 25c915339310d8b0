#include "runtime/device/CpuExecutor.h"
#include "runtime/support/Checked.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>

namespace lathe::runtime {
namespace {

constexpr u64 slotAlignment = 64;
/// Bytes after the last buffer, so that a full vector may be loaded at any
/// element.
constexpr u64 arenaTail = 256;

/// Where the parts of the arena start.
struct ArenaLayout {
  std::vector<u64> slots;
  u64 hidden = 0;
  u64 headInput = 0;
  u64 logits = 0;
  u64 bytes = 0;
};

/// Adds up sizes and remembers whether any sum overflowed.
class SizeSum {
public:
  void add(u64 count, u64 bytesEach) {
    auto bytes = checkedMul<u64>(count, bytesEach);
    sum = sum && bytes ? checkedAdd<u64>(*sum, *bytes) : std::nullopt;
  }
  /// Rounds up to the alignment of slots; returns the sum so far.
  u64 align() {
    if (sum)
      sum = checkedAlign(*sum, slotAlignment);
    return sum.value_or(0);
  }
  std::optional<u64> total() const { return sum; }

private:
  std::optional<u64> sum = 0;
};

AttentionShape attentionShape(const StepProgram &program,
                              const KvGroupInfo &group, u32 rows, u32 threads) {
  return {.chunk = program.attentionChunk,
          .rowTile = program.attentionRowTile,
          .window = group.window,
          .kvHeads = group.kvHeads,
          .threads = threads,
          .rows = rows,
          .context = program.context};
}

std::optional<ArenaLayout> layOut(const StepProgram &program,
                                  const CpuExecutor::Capacities &capacities,
                                  u32 threads) {
  u64 partials = 0;
  for (const KvGroupInfo &group : program.groups)
    partials = std::max<u64>(
        partials,
        AttentionPlan(attentionShape(program, group, capacities.rows, threads))
            .partialCapacity());
  ArenaLayout layout;
  SizeSum sum;
  for (const SlotSize &slot : program.slots) {
    layout.slots.push_back(sum.align());
    sum.add(slot.rows, capacities.rows);
    sum.add(slot.sequences, capacities.sequences);
    sum.add(slot.partials, partials);
    sum.add(slot.threads, threads);
    sum.add(slot.constant, 1);
  }
  layout.hidden = sum.align();
  sum.add(u64(capacities.rows) * program.hidden, sizeof(f32));
  layout.headInput = sum.align();
  sum.add(u64(maxHeadRows) * program.hidden, sizeof(f32));
  layout.logits = sum.align();
  sum.add(u64(maxHeadRows) * program.vocab, sizeof(f32));
  sum.add(1, arenaTail);
  std::optional<u64> total = sum.total();
  if (!total)
    return std::nullopt;
  layout.bytes = *total;
  return layout;
}

} // namespace

u64 CpuExecutor::arenaBytes(const StepProgram &program,
                            const Capacities &capacities, u32 threads) {
  auto layout = layOut(program, capacities, threads);
  return layout ? layout->bytes : ~u64(0);
}

CpuExecutor::CpuExecutor(StepProgram newProgram, const Capacities &capacities,
                         ThreadTeam &team, KvCache *kv)
    : program(std::move(newProgram)), limits(capacities), team(&team), kv(kv) {
  tokens.resize(limits.rows);
  positions.resize(limits.rows);
  rowSequence.resize(limits.rows);
  sequenceStarts.resize(u64(limits.sequences) + 1);
  sequenceRows.reserve(limits.sequences);
  wantedSequences.reserve(limits.sequences);
  wantedRanges.reserve(limits.sequences);
  u32 stride = (program.context + pageTokens - 1) / pageTokens;
  for (u32 group = 0; group < program.groups.size(); ++group) {
    pageTables.emplace_back(u64(limits.sequences) * stride, reservedPage);
    groupArgs.push_back({.pool = kv->pool(group).base(),
                         .pages = pageTables.back().data(),
                         .pageTableStride = stride,
                         .pageCount = kv->pool(group).totalPages() + 1});
    // Not one copied from the other: a copy has no room reserved.
    for (std::vector<AttentionPlan> *made : {&plans, &wantedPlans})
      made->emplace_back(attentionShape(program, program.groups[group],
                                        limits.rows, team.threads()));
  }
  workLists.resize(plans.size());
  wantedLists.resize(plans.size());
}

Result<std::unique_ptr<CpuExecutor>>
CpuExecutor::create(StepProgram program, const Capacities &capacities,
                    ThreadTeam &team, KvCache *kv) {
  if (capacities.rows == 0 || capacities.sequences == 0 || !program.body ||
      !program.head || program.vocab == 0 || program.hidden == 0 ||
      program.context == 0 || program.kv != (kv != nullptr) ||
      (kv && (program.attentionChunk == 0 || program.attentionRowTile == 0)) ||
      (kv ? kv->groups().size() : 0) != program.groups.size())
    return fail(ErrorKind::Internal,
                "the executor was given a program without a part, or no room");
  auto layout = layOut(program, capacities, team.threads());
  if (!layout)
    return fail(ErrorKind::Exhausted,
                "buffers for {} rows do not fit any memory; lower --chunk",
                capacities.rows);
  auto arena = MemoryRegion::map(layout->bytes, "the step's buffers");
  if (!arena)
    return failFrom(arena);
  std::unique_ptr<CpuExecutor> executor(
      new CpuExecutor(std::move(program), capacities, team, kv));
  u8 *base = arena->data();
  for (u64 offset : layout->slots)
    executor->slots.push_back(base + offset);
  executor->hiddenStates = reinterpret_cast<f32 *>(base + layout->hidden);
  executor->headInput = reinterpret_cast<f32 *>(base + layout->headInput);
  executor->logits = reinterpret_cast<f32 *>(base + layout->logits);
  executor->arena = std::move(*arena);

  StepArgs &args = executor->args; // the rest stays zero
  args.version = stepAbiVersion;
  args.sizeBytes = sizeof(StepArgs);
  args.groupCount = u32(executor->groupArgs.size());
  args.weights = executor->program.weights;
  args.slots = executor->slots.data();
  args.groups = executor->groupArgs.data();
  args.tokens = executor->tokens.data();
  args.positions = executor->positions.data();
  args.rowSequence = executor->rowSequence.data();
  args.sequenceStarts = executor->sequenceStarts.data();
  args.attentionWork = executor->workLists.data();
  args.wantedRows = executor->wantedRanges.data();
  args.wantedWork = executor->wantedLists.data();
  args.hidden = executor->hiddenStates;
  args.headInput = executor->headInput;
  args.logits = executor->logits;
  args.picked = executor->picked.data();
  args.barrier = team.barrier();
  args.spinLimit = ThreadTeam::spinLimit();
  return executor;
}

Result<void>
CpuExecutor::checkBatch(std::span<const BatchSequence> batch) const {
  if (batch.empty() || batch.size() > limits.sequences ||
      (!program.kv && batch.size() != 1))
    return fail(ErrorKind::InvalidInput,
                "a step of {} sequences; this one takes 1 to {}", batch.size(),
                program.kv ? limits.sequences : 1);
  u64 rows = 0;
  for (const BatchSequence &sequence : batch) {
    rows += sequence.tokens.size();
    u64 end = sequence.cache ? sequence.cache->length() : rows;
    if (sequence.tokens.empty() || (sequence.cache != nullptr) != program.kv ||
        end < sequence.tokens.size() ||
        (kv && sequence.cache && !sequence.cache->isIn(*kv)))
      return fail(ErrorKind::Internal,
                  "a sequence of a batch has no tokens or no cache for them");
    if (end > program.context)
      return fail(ErrorKind::InvalidInput,
                  "position {} is past the engine's context of {} tokens",
                  end - 1, program.context);
    for (i32 token : sequence.tokens)
      if (token < 0 || u32(token) >= program.vocab)
        return fail(ErrorKind::InvalidInput,
                    "token id {} is not in the vocabulary of {}", token,
                    program.vocab);
  }
  if (rows > limits.rows)
    return fail(ErrorKind::InvalidInput,
                "a step of {} rows; this one takes at most {}", rows,
                limits.rows);
  return {};
}

void CpuExecutor::fillBatch(std::span<const BatchSequence> batch) {
  sequenceRows.clear();
  wantedSequences.clear();
  wantedRanges.clear();
  u32 row = 0;
  for (u32 s = 0; s < batch.size(); ++s) {
    const BatchSequence &sequence = batch[s];
    u32 count = u32(sequence.tokens.size());
    u32 start = sequence.cache ? sequence.cache->length() - count : 0;
    sequenceStarts[s] = row;
    sequenceRows.push_back({.firstRow = row, .rows = count, .start = start});
    u32 wanted = std::min(sequence.wanted, count), skipped = count - wanted;
    wantedSequences.push_back(
        {.firstRow = row + skipped, .rows = wanted, .start = start + skipped});
    if (wanted != 0 && skipped == 0 && !wantedRanges.empty() &&
        wantedRanges.back().begin + wantedRanges.back().count == row)
      wantedRanges.back().count += wanted;
    else if (wanted != 0)
      wantedRanges.push_back({.begin = row + skipped, .count = wanted});
    for (u32 i = 0; i < count; ++i, ++row) {
      tokens[row] = sequence.tokens[i];
      positions[row] = i32(start + i);
      rowSequence[row] = s;
    }
    for (u32 group = 0; sequence.cache && group < groupArgs.size(); ++group) {
      auto pages = sequence.cache->pages(group).first(
          (start + count + pageTokens - 1) / pageTokens);
      std::copy(pages.begin(), pages.end(),
                pageTables[group].begin() +
                    long(u64(s) * groupArgs[group].pageTableStride));
    }
  }
  sequenceStarts[batch.size()] = row;
  args.rows = row;
  args.sequences = u32(batch.size());
  args.headRows = 0;
  args.wantedRangeCount = u32(wantedRanges.size());
  planAttention();
}

void CpuExecutor::planAttention() {
  bool allWanted =
      wantedRanges.size() == 1 && wantedRanges.front().count == args.rows;
  for (u32 group = 0; group < plans.size(); ++group) {
    plans[group].plan(sequenceRows);
    workLists[group] = wantedLists[group] = plans[group].list();
    if (allWanted)
      continue;
    wantedPlans[group].plan(wantedSequences);
    wantedLists[group] = wantedPlans[group].list();
  }
}

bool CpuExecutor::isWanted(u32 row) const {
  return std::ranges::any_of(wantedRanges, [row](const RowRange &range) {
    return row >= range.begin && row - range.begin < range.count;
  });
}

void CpuExecutor::call(StepFunction function, u64 *trace) {
  args.trace = trace;
  team->run([this, function](u32 thread, u32 threads) {
    function(&args, thread, threads);
  });
}

Result<void> CpuExecutor::step(std::span<const BatchSequence> batch,
                               u64 *trace) {
  if (auto checked = checkBatch(batch); !checked)
    return checked;
  fillBatch(batch);
  call(program.body, trace);
  return {};
}

void CpuExecutor::gatherRows(std::span<const u32> rows) {
  assert(!rows.empty() && rows.size() <= maxHeadRows);
  for (size_t i = 0; i < rows.size(); ++i) {
    assert(isWanted(rows[i]));
    std::memcpy(headInput + i * program.hidden, hidden(rows[i]).data(),
                program.hidden * sizeof(f32));
  }
  args.headRows = u32(rows.size());
}

const f32 *CpuExecutor::head(std::span<const u32> rows, u64 *trace) {
  gatherRows(rows);
  call(program.head, trace);
  return logits;
}

std::span<const PickResult> CpuExecutor::pick(std::span<const u32> rows,
                                              std::span<const PickArgs> how,
                                              u64 *trace) {
  assert(canPick() && how.size() == rows.size());
  gatherRows(rows);
  args.pickArgs = how.data();
  call(program.pick, trace);
  args.pickArgs = nullptr;
  return std::span(picked).first(rows.size());
}

void CpuExecutor::forEach(u32 count, const std::function<void(u32)> &work) {
  team->run([&](u32 thread, u32 threads) {
    for (u32 index = thread; index < count; index += threads)
      work(index);
  });
}

} // namespace lathe::runtime

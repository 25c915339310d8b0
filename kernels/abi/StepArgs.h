/// \file
/// The ABI between the runtime and the code of an engine, for every target.
///
/// A step is one call of an entry point over a *ragged batch*: T token rows
/// that belong to S sequences, never padded. Rows of one sequence are
/// neighbours and their absolute positions ascend by one. The runtime fills a
/// StepArgs, every thread of its team calls the entry point with it, and the
/// entry point returns in all of them once the step's outputs are complete.
///
/// Entry points (interfaces.md, "Program and StepArgs"):
///   body  tokens[T]           -> hidden[wanted rows of T][H], writes the KV
///                                cache
///   head  headInput[R][H]     -> logits[R][vocab], R <= maxHeadRows
///   pick  headInput[R][H], pickArgs[R] -> picked[R]; not every engine has it.
///         Leaves nothing of use in `logits`.
///
/// Ownership: everything is the caller's; code keeps no pointer after it
/// returns. Threads: one step at a time per StepArgs; the team's threads share
/// it read-only, apart from the barrier and the outputs.
#ifndef LATHE_KERNELS_ABI_STEPARGS_H
#define LATHE_KERNELS_ABI_STEPARGS_H

#include "kernels/abi/Types.h"

namespace lathe {

/// Version of the structures in this file. An engine records the one that its
/// code was built with; a runtime refuses another. Fields of StepArgs are only
/// ever appended: code needs sizeBytes >= the size that it was built with, and
/// the version changes only when something existing does.
inline constexpr u32 stepAbiVersion = 2;

/// Tokens in one KV page, for all targets (interfaces.md, "KV groups").
inline constexpr u32 pageTokens = 16;

/// Page id of freed or never used table entries; its contents are never read
/// for a visible key.
inline constexpr u32 reservedPage = 0;

/// Most rows of one call of `head` or `pick`.
inline constexpr u32 maxHeadRows = 32;

/// Up to this many rows a `replicated` launch is done by every thread for
/// itself, without a barrier.
inline constexpr u32 maxReplicatedRows = 4;

/// 32 consecutive values of one activation row, quantized to int8
/// (numerics.md, "Integer ranges"): value[i] ~ d * q[i].
///
/// laneSum[h][p] is the sum of the q[i] with i / 16 == h and (i % 4) / 2 == p:
/// what one int16 lane of an AVX2 maddubs tile sees of half-block h, from which
/// biased accumulators start. The four add up to the sum of the block. The
/// values are the contract of docs/numerics.md; this storage is the CPU's.
struct ActivationBlock {
  f32 d;
  i16 laneSum[2][2];
  i8 q[32];
};
static_assert(sizeof(ActivationBlock) == 44, "frozen layout");

inline constexpr u32 activationBlockElems = 32;

/// One KV group's storage. A page holds 16 tokens of all layers of the group.
/// It is described as if its bytes lay together (a layer's K and V have offsets
/// in it), but lies in the pool in *strips*, one for a head's K or V in a
/// layer: the strip of b bytes at offset o of page p starts at pool + o *
/// pageCount + p * b, beside the same strip of the next page. So a head's keys
/// of a sequence whose pages are neighbours are one stream.
struct KvGroupArgs {
  u8 *pool;
  /// Page ids, [S][pageTableStride]: entry position / 16 of row `sequence`.
  const u32 *pages;
  /// Entries per sequence in `pages`.
  u32 pageTableStride;
  /// Pages of the pool, the reserved one among them.
  u32 pageCount;
};

/// One unit of attention work: some rows of one sequence against some chunks of
/// its keys, for all KV heads of the launch. The list is the runtime's; how it
/// is cut never changes a bit of the result (numerics.md, "Attention").
struct AttentionWork {
  /// Whose page table to use; the rows may be of any sequence whose entries for
  /// these chunks are the same.
  u32 sequence;
  /// First row of the step, and how many (<= the program's attention row tile).
  u32 firstRow;
  u32 rowCount;
  /// First chunk of keys, and how many. An item that covers every chunk that
  /// its rows can see folds as it goes and needs no partials.
  u32 firstChunk;
  u32 chunkCount;
  /// First partial set of this item in the partials slot; ~0u if the item folds
  /// as it goes. The set of (row, chunk) is
  /// partial + (row - firstRow) * chunkCount + (chunk - firstChunk); a set of a
  /// chunk that its row does not see has l = 0 and is skipped.
  u32 partial;
  /// Items that share `counter` complete the same rows: `siblings` consecutive
  /// items of the list, in order of their chunks. The thread that finishes the
  /// last of them folds all their partials, left to right, and resets the
  /// counter to 0.
  u32 counter;
  u32 siblings;
};

/// The work items of one KV group. `counters` is the caller's, zero between
/// steps: [counterCount][KV heads], used only by items with partials.
struct AttentionWorkList {
  const AttentionWork *items;
  u32 *counters;
  u32 count;
  u32 counterCount;
};

/// Rows [begin, begin + count) of a step.
struct RowRange {
  u32 begin;
  u32 count;
};

/// A spin-then-sleep barrier between the threads of a team. Zeroed before first
/// use; reusable for ever.
struct alignas(64) StepBarrier {
  u32 arrived;
  u32 generation;
  u32 sleepers;
};

/// An edit of one logit before a pick, with two roundings:
/// logit' = (logit > 0 ? logit / factor : logit * factor) + addend.
struct PickEdit {
  i32 token;
  f32 addend;
  f32 factor;
};

/// Most candidates that `pick` keeps for top-k.
inline constexpr u32 maxPickTopK = 128;

/// Scratch that `pick` takes for each row.
inline constexpr u32 pickStateBytes = 1088;

/// How to pick a token from one row of logits; `pickFromLogits` in
/// runtime/sample is the definition. `pick` wants the ids of the edits rising.
struct PickArgs {
  f32 temperature = 0; ///< 0: the argmax.
  f32 minP = 0;        ///< 0: off.
  u32 topK = 0;        ///< 0: off.
  u32 position = 0;    ///< With `seed`, the key of the noise.
  u64 seed = 0;
  const PickEdit *edits = nullptr;
  u64 editCount = 0;
  /// One bit per token id, or null if every token is allowed.
  const u32 *allowed = nullptr;
};

struct PickResult {
  /// -1 from `pick`: this row is left to the definition, which may say why.
  i32 token;
  f32 logit;
  /// 16-row groups of the head that `pick` had to compute exactly; many make it
  /// slower than `head`. 0 from pickFromLogits.
  u32 exactGroups = 0;
};

/// Everything a step reads and writes.
struct StepArgs {
  u32 version;   ///< stepAbiVersion.
  u32 sizeBytes; ///< sizeof(StepArgs) of the caller.

  u32 rows;      ///< T.
  u32 sequences; ///< S.
  u32 headRows;  ///< R, for `head` and `pick`.
  u32 groupCount;

  /// Space `weights`: operands are constant offsets from here.
  const u8 *weights;
  /// Space `arena`: the address of each slot, 64-byte aligned. Sizes are the
  /// program's a*T + b*S + c*C + d*N + e.
  u8 *const *slots;
  /// Space `kv`, one per group.
  const KvGroupArgs *groups;

  const i32 *tokens;         ///< [T], each in [0, vocab).
  const i32 *positions;      ///< [T], absolute, less than the engine's context.
  const u32 *rowSequence;    ///< [T], which sequence a row belongs to.
  const u32 *sequenceStarts; ///< [S + 1], first row of each sequence.
  const AttentionWorkList *attentionWork; ///< One per group.

  f32 *hidden;              ///< [T][H], output of `body`, in wanted rows.
  const f32 *headInput;     ///< [R][H], input of `head` and `pick`.
  f32 *logits;              ///< [R][vocab], output of `head`.
  const PickArgs *pickArgs; ///< [R], input of `pick`.
  PickResult *picked;       ///< [R], output of `pick`.

  StepBarrier *barrier;
  /// Pauses before a waiting thread sleeps: about 20 microseconds.
  u32 spinLimit;
  u32 reserved;
  /// If not null: [launches][threads][2] time stamps (TSC), start and end of
  /// each launch of the entry point in each thread.
  u64 *trace;

  // Room for adapters and tensor parallelism; null and 0 until then.
  const u32 *sequenceAdapters; ///< [S], an adapter id per sequence.
  const void *adapters;
  u32 rank;
  u32 ranks;

  /// The rows whose hidden states are wanted: ranges that rise and do not
  /// touch. What only those states need is computed for these rows alone; the
  /// other rows of `hidden` hold nothing of use.
  const RowRange *wantedRows;
  u32 wantedRangeCount;
  /// The attention of the wanted rows, one list per group.
  const AttentionWorkList *wantedWork;
};

/// An entry point of a CPU code object: called by every thread of the team with
/// thread in [0, threads).
using StepFunction = void (*)(const StepArgs *args, u32 thread, u32 threads);

/// A single kernel of a CPU code object, exported as lathe_kernel_<id>:
/// `operands` in the order of the kernel's operand list, `rows` live rows.
using KernelFunction = void (*)(const StepArgs *args,
                                const void *const *operands, u32 rows,
                                u32 thread, u32 threads);

} // namespace lathe

#endif // LATHE_KERNELS_ABI_STEPARGS_H

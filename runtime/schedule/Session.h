/// \file
/// One sequence of tokens evaluated by an engine: a chat, a completion, a text
/// to score.
#ifndef LATHE_RUNTIME_SCHEDULE_SESSION_H
#define LATHE_RUNTIME_SCHEDULE_SESSION_H

#include "runtime/device/CpuExecutor.h"
#include "runtime/device/ThreadTeam.h"
#include "runtime/kv/KvCache.h"
#include "runtime/sample/Pick.h"
#include "runtime/schedule/LoadedEngine.h"
#include "runtime/schedule/PickTrial.h"
#include "runtime/support/Result.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// What the user of the caller knows options by, for messages.
struct SessionOptionNames {
  std::string_view context = "--context";
  std::string_view chunk = "--chunk";
  std::string_view kvBytes = "kvBytes";
};

struct SessionOptions {
  /// Threads of the team; 0: what affinity and cgroup quota allow.
  u32 threads = 0;
  /// Most tokens of the sequence; 0: the engine's context, or as much of it as
  /// the memory holds, then with a notice.
  u32 context = 0;
  /// Most bytes of KV cache; 0: what is available.
  u64 kvBytes = 0;
  /// Rows of one prefill step, > 0. Larger is faster and takes more buffers;
  /// the results are the same.
  u32 chunk = 512;
  /// Poisons freed KV pages (PagePool::Options), for tests.
  bool poisonFreed = false;
  SessionOptionNames names = {};
};

/// Sees the logits [vocab] of the token at `position`, i.e. the prediction of
/// the one at position + 1. The row is valid during the call.
using LogitsVisitor =
    std::function<void(u32 position, std::span<const f32> logits)>;

/// Owns a sequence, its KV cache and the threads and buffers to evaluate it.
/// The tokens so far, evaluated in whatever steps, alone decide the logits. One
/// thread at a time.
class Session {
public:
  /// Errors: Exhausted (memory; says needed and available bytes and the flag to
  /// lower), InvalidInput (an option out of range).
  static Result<std::unique_ptr<Session>>
  create(std::shared_ptr<const LoadedEngine> engine,
         const SessionOptions &options);

  /// The same for a program whose code and weights the caller keeps alive.
  static Result<std::unique_ptr<Session>> create(StepProgram program,
                                                 const SessionOptions &options);

  /// Most tokens of the sequence.
  u32 context() const { return limit; }
  u32 vocab() const { return executor->stepProgram().vocab; }
  u32 threads() const { return team->threads(); }
  /// What was decided for the user at create(), in one line; usually empty.
  const std::string &notice() const { return note; }

  /// The tokens evaluated so far.
  const std::vector<i32> &tokens() const { return history; }

  /// Evaluates further tokens, in steps of at most the chunk. On an error the
  /// tokens are as before. Errors: InvalidInput (a token outside the
  /// vocabulary, past the context).
  Result<void> append(std::span<const i32> tokens) {
    return append(tokens, u32(tokens.size()), nullptr);
  }

  /// The same, and shows the logits of all but the first `skip` of these tokens
  /// to `visitor`, in order.
  Result<void> append(std::span<const i32> tokens, u32 skip,
                      const LogitsVisitor &visitor);

  /// Makes the sequence equal `tokens` (not empty): keeps the common prefix
  /// with what it is now, evaluates the rest and at least the last token.
  /// `stop`, if not null, is asked before each step and ends the evaluation
  /// early: tokens() is then a prefix of `tokens` without logits. Returns how
  /// many tokens were evaluated. Errors as append().
  Result<u32> replaceBy(std::span<const i32> tokens,
                        const std::function<bool()> &stop = nullptr);

  /// The logits [vocab] that follow tokens(), which are not empty and whose
  /// last one the latest append() or replaceBy() evaluated. Valid until the
  /// next call that evaluates or forgets.
  std::span<const f32> logits();

  /// The token that follows tokens() by `args`: pickFromLogits() of logits(),
  /// bit for bit, but where the engine can, without computing all of them.
  /// Errors: those of pickFromLogits().
  Result<PickResult> pick(const PickArgs &args);

  /// Forgets the tokens from `length` (<= tokens().size()) on. Where the cache
  /// cannot go back so far (a window group gave pages back), the rest is
  /// evaluated again.
  Result<void> truncate(u32 length);

private:
  Session() = default;
  /// Evaluates up to one chunk, with the hidden states of the tokens from
  /// position `wantedFrom` on; returns the number of tokens.
  Result<u32> step(std::span<const i32> tokens, u32 wantedFrom);
  /// All in the vocabulary, and room for them from position `start` on.
  Result<void> checkTokens(std::span<const i32> tokens, u32 start) const;
  /// Row of the latest step that holds the token at `position`.
  u32 rowOf(u32 position) const { return position - stepStart; }

  std::shared_ptr<const LoadedEngine> engine; ///< May be null.
  std::unique_ptr<ThreadTeam> team;
  std::unique_ptr<KvCache> cache; ///< Null without KV.
  std::unique_ptr<SequenceCache> sequence;
  std::unique_ptr<CpuExecutor> executor;
  u32 limit = 0;
  std::string note;
  std::vector<i32> history;
  u32 stepStart = 0; ///< Position of the latest step's first row.
  bool hasLogits =
      false; ///< The executor's logits are those of the last token.
  const f32 *lastLogits = nullptr;
  PickScratch scratch;
  PickTrial pickTrial;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_SESSION_H

/// \file
/// What evaluates steps, whatever device it runs on.
#ifndef LATHE_RUNTIME_DEVICE_STEPEXECUTOR_H
#define LATHE_RUNTIME_DEVICE_STEPEXECUTOR_H

#include "runtime/kv/KvCache.h"
#include "runtime/support/Result.h"

#include <functional>
#include <span>

namespace lathe::runtime {

/// The rows of one sequence in a batch.
struct BatchSequence {
  /// The sequence's cache, already extended by these tokens; null if the
  /// program has no KV cache.
  SequenceCache *cache = nullptr;
  /// The tokens at positions cache->length() - tokens.size() and on (from 0 if
  /// there is no cache).
  std::span<const i32> tokens;
  /// So many of the last tokens want their hidden states; more than there are:
  /// all of them. Fewer cost less.
  u32 wanted = ~0u;
};

/// Evaluates ragged batches, and the logits of rows of the latest. One thread
/// at a time.
class StepExecutor {
public:
  struct Capacities {
    u32 rows = 0;      ///< Most token rows of a step, T; > 0.
    u32 sequences = 1; ///< Most sequences of a step, S; > 0.
  };

  virtual ~StepExecutor() = default;

  virtual const Capacities &capacities() const = 0;
  virtual u32 vocab() const = 0;

  /// Evaluates a batch: the caches' pages are written, the hidden states of
  /// wanted rows are ready for head(). Errors (nothing has run then):
  /// InvalidInput (a token outside the vocabulary, a position past the context,
  /// more rows or sequences than the capacities).
  virtual Result<void> step(std::span<const BatchSequence> batch) = 0;

  /// Logits [rows.size()][vocab] of wanted rows of the latest step, at most
  /// maxHeadRows. Valid until the next call.
  virtual const f32 *head(std::span<const u32> rows) = 0;

  /// Whether pick() may be called.
  virtual bool canPick() const = 0;

  /// A token for each of these rows (as of head()) by its args, or token -1:
  /// such a row has to be picked by pickFromLogits(), which every other result
  /// equals. Valid until the next call; the logits of an earlier head() are
  /// overwritten.
  virtual std::span<const PickResult> pick(std::span<const u32> rows,
                                           std::span<const PickArgs> args) = 0;

  /// Calls `work` with each index below `count`, on whatever threads there are,
  /// and returns when all calls have.
  virtual void forEach(u32 count, const std::function<void(u32)> &work) {
    for (u32 index = 0; index < count; ++index)
      work(index);
  }
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_DEVICE_STEPEXECUTOR_H

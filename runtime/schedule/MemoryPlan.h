/// \file
/// What an engine's memory is divided into, settled before any of it is taken.
#ifndef LATHE_RUNTIME_SCHEDULE_MEMORYPLAN_H
#define LATHE_RUNTIME_SCHEDULE_MEMORYPLAN_H

#include "runtime/device/Memory.h"
#include "runtime/device/StepProgram.h"
#include "runtime/support/Result.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// What the user of the caller knows the wishes by, for messages.
struct MemoryWishNames {
  std::string_view context = "--context";
  std::string_view requests = "--requests";
  std::string_view stepRows = "--chunk";
};

struct MemoryWishes {
  /// Most tokens of a sequence; 0: the engine's context, or as much of it as
  /// the memory holds, then with a notice.
  u32 context = 0;
  /// Most sequences that run together, 1 to mostRequests. Pools are no larger
  /// than so many sequences of the context need.
  u32 requests = 1;
  /// Rows of a step, > 0; raised to `requests`.
  u32 stepRows = 512;
  /// Bytes of the engine's weights.
  u64 weightBytes = 0;
  MemoryWishNames names = {};
};

/// Something that bounds the KV pools and, if it counts them, more.
struct MemoryLimit {
  MemoryBudget budget;
  bool countsArena = true;
  bool countsWeights = false;
  /// The option that raises it, if there is one.
  std::string_view option = {};
};

/// Sizes of the KV pools and of the step's buffers that keep within limits. At
/// least one sequence of the context fits; nothing that comes later needs more.
struct MemoryPlan {
  static constexpr u32 mostRequests = 1 << 16;
  /// Below this a chat is of no use: rather an error than so small a context.
  static constexpr u32 leastContext = 256;

  u32 context = 0;  ///< Most tokens of a sequence.
  u32 requests = 0; ///< Most sequences of a step, S.
  u32 stepRows = 0; ///< Most rows of a step, T.
  u64 weightBytes = 0;
  u64 arenaBytes = 0; ///< The step's buffers (CpuExecutor::arenaBytes).
  u64 kvBytes = 0;    ///< The pools (KvCache::bytesFor).
  std::vector<KvGroupInfo> groups; ///< The program's.
  std::vector<u32> pages;          ///< Per group, as KvCache::Options.
  /// Most bytes that the limits leave to pools, beside what they count.
  u64 kvAvailable = 0;
  /// What was decided for the user, in one line; usually empty.
  std::string notice;

  /// Weights, arena and KV; saturates at 2^64 - 1.
  u64 totalBytes() const;

  /// Tokens that the pools of full groups hold; of all groups if none is full.
  u64 kvTokens() const;

  /// Sequences of `length` (1 to context) tokens that the pools hold together.
  u32 requestsOf(u32 length) const;

  /// Sequences of `length` tokens that pools of kvAvailable bytes would hold
  /// together.
  u64 requestsAvailable(u32 length) const;

  /// Settles for limits. A group with a window gets pages in proportion to what
  /// a sequence of the context needs of it, so that as many of these as
  /// possible fit, but, where there is room, at least what `requests` short
  /// sequences need. Errors: Exhausted (not even one sequence of the context,
  /// or of leastContext where none was asked for; says needed and available
  /// bytes and the option to change), InvalidInput (a wish out of range).
  static Result<MemoryPlan> settle(StepProgram program, u32 threads,
                                   const MemoryWishes &wishes,
                                   std::span<const MemoryLimit> limits);

  /// Settles for this process: weights, arena and KV in `memoryBytes`, arena
  /// and KV in what MemoryBudget::detect() says. If `memoryBytes` is 0, all
  /// three in what is available, less some headroom; where even the least does
  /// not fit so, one request at a time beside weights that the system drops and
  /// reads again, with a notice. `option` sets memoryBytes. Errors as settle().
  static Result<MemoryPlan> settleHere(const StepProgram &program, u32 threads,
                                       const MemoryWishes &wishes,
                                       u64 memoryBytes,
                                       std::string_view option = "--memory");
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_MEMORYPLAN_H

#include "runtime/schedule/MemoryPlan.h"
#include "runtime/device/CpuExecutor.h"
#include "runtime/support/Checked.h"

#include <algorithm>
#include <array>

namespace lathe::runtime {
namespace {

/// Contexts that are chosen for the user are multiples of this.
constexpr u32 contextStep = MemoryPlan::leastContext;
/// Tokens of a sequence that is called short: a question and its answer.
constexpr u32 shortSequence = 512;
/// Most of the memory left for page tables, prompts and other processes.
constexpr u64 headroomMost = u64(512) << 20;

u64 addSaturated(u64 a, u64 b) {
  return checkedAdd<u64>(a, b).value_or(~u64(0));
}

/// The largest number in [low, high] for which `fits` holds, which does for
/// `low` and for no number above one for which it does not.
template <typename Fits> u64 largest(u64 low, u64 high, Fits fits) {
  while (low < high) {
    u64 middle = low + (high - low + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

struct Needs {
  u64 weights = 0, arena = 0, kv = 0;

  u64 of(const MemoryLimit &limit) const {
    return addSaturated(kv, addSaturated(limit.countsArena ? arena : 0,
                                         limit.countsWeights ? weights : 0));
  }
};

/// Settles the plan of one program.
class Settling {
public:
  Settling(StepProgram program, u32 threads, const MemoryWishes &wishes,
           std::span<const MemoryLimit> limits)
      : program(std::move(program)), threads(threads), wishes(wishes),
        limits(limits), requests(this->program.kv ? wishes.requests : 1) {}

  Result<MemoryPlan> settle() {
    MemoryPlan plan;
    if (auto chosen = chooseContext(plan.notice); !chosen)
      return failFrom(chosen);
    Needs needs = needsOf(program.context);
    plan.context = program.context;
    plan.requests = requests;
    plan.stepRows = rows(program.context);
    plan.weightBytes = wishes.weightBytes;
    plan.arenaBytes = needs.arena;
    plan.pages = choosePages(needs);
    plan.kvBytes = KvCache::bytesFor(program.groups, plan.pages);
    plan.groups = std::move(program.groups);
    plan.kvAvailable = ~u64(0);
    for (const MemoryLimit &limit : limits)
      plan.kvAvailable =
          std::min(plan.kvAvailable,
                   limit.budget.available - (needs.of(limit) - needs.kv));
    return plan;
  }

private:
  /// Rows of a step: without a cache a step is the whole sequence.
  u32 rows(u32 context) const {
    if (!program.kv)
      return context;
    return u32(std::min<u64>(std::max(wishes.stepRows, requests),
                             u64(context) * requests));
  }

  std::vector<u32> pagesOf(u32 length, u32 context) const {
    return KvCache::pagesForSequence(program.groups, length, rows(context));
  }

  /// What one sequence of the context needs.
  Needs needsOf(u32 context) {
    program.context = context;
    return {
        .weights = wishes.weightBytes,
        .arena = CpuExecutor::arenaBytes(
            program, {.rows = rows(context), .sequences = requests}, threads),
        .kv = KvCache::bytesFor(program.groups, pagesOf(context, context))};
  }

  const MemoryLimit *firstExceeded(const Needs &needs) const {
    auto limit = std::ranges::find_if(limits, [&](const MemoryLimit &each) {
      return needs.of(each) > each.budget.available;
    });
    return limit == limits.end() ? nullptr : &*limit;
  }

  /// Sets program.context to what the wishes and the limits allow.
  Result<void> chooseContext(std::string &notice) {
    u32 full = wishes.context ? wishes.context : program.context;
    auto exceeded = [&](u64 context) {
      return firstExceeded(needsOf(u32(context)));
    };
    Needs all = needsOf(full);
    const MemoryLimit *limit = firstExceeded(all);
    if (!limit)
      return {};
    u32 least =
        wishes.context ? full : std::min(full, MemoryPlan::leastContext);
    if (least == full || exceeded(least))
      return tooSmall(least);
    needsOf(contextStep * u32(largest(least / contextStep, full / contextStep,
                                      [&](u64 steps) {
                                        return !exceeded(steps * contextStep);
                                      })));
    notice = fmt::format(
        "context lowered from {} to {} tokens: the full one needs {}, {} are "
        "available ({}); {} sets it",
        full, program.context, formatBytes(all.of(*limit)),
        formatBytes(limit->budget.available), limit->budget.limitedBy,
        wishes.names.context);
    return {};
  }

  /// The error that a context does not fit.
  Result<void> tooSmall(u32 context) {
    Needs needs = needsOf(context);
    const MemoryLimit &limit = *firstExceeded(needs);
    std::string what =
        limit.countsArena
            ? fmt::format("a context of {} tokens ({}KV cache and buffers)",
                          context, limit.countsWeights ? "weights, " : "")
            : fmt::format("the KV cache of {} tokens", context);
    std::string advice;
    bool weightsAlone =
        limit.countsWeights && needs.weights > limit.budget.available;
    if (!weightsAlone)
      advice = fmt::format(
          "lower {}", !limit.countsArena || needs.kv > needs.arena
                          ? wishes.names.context
                      : requests > wishes.stepRows ? wishes.names.requests
                                                   : wishes.names.stepRows);
    if (!limit.option.empty())
      advice +=
          fmt::format("{}raise {}", advice.empty() ? "" : " or ", limit.option);
    if (advice.empty())
      advice = "take a smaller model or a machine with more";
    return limit.budget.check(needs.of(limit), what, advice);
  }

  /// Pages for `share` / `shares` sequences that each hold `one`, but not less
  /// than `floor`.
  std::vector<u32> pagesAt(u64 share, std::span<const u32> one,
                           std::span<const u32> floor, u64 shares) const {
    std::vector<u32> pages(one.size());
    for (size_t group = 0; group < one.size(); ++group) {
      u64 count = share / shares * one[group] + // no overflow so
                  share % shares * one[group] / shares;
      pages[group] =
          u32(std::min<u64>(std::max<u64>(count, floor[group]), mostPages));
    }
    return pages;
  }

  std::vector<u32> choosePages(const Needs &needs) const {
    if (program.groups.empty())
      return {};
    std::vector<u32> one = pagesOf(program.context, program.context);
    std::vector<u32> ofShort =
        pagesOf(std::min(shortSequence, program.context), program.context);
    auto fits = [&](std::span<const u32> pages) {
      Needs these = needs;
      these.kv = KvCache::bytesFor(program.groups, pages);
      return !firstExceeded(these);
    };
    auto floorOf = [&](u64 sequences) {
      std::vector<u32> floor(one.size());
      for (size_t group = 0; group < one.size(); ++group)
        floor[group] = u32(std::min<u64>(
            std::max<u64>(one[group], sequences * ofShort[group]), mostPages));
      return floor;
    };
    std::vector<u32> floor = floorOf(
        largest(1, requests, [&](u64 count) { return fits(floorOf(count)); }));
    u64 shares = *std::ranges::max_element(one);
    u64 share = largest(shares, shares * requests, [&](u64 count) {
      return fits(pagesAt(count, one, floor, shares));
    });
    return pagesAt(share, one, floor, shares);
  }

  /// Ids of pages are u32, and 0 is reserved.
  static constexpr u64 mostPages = ~u32(0) - 1;

  StepProgram program;
  u32 threads;
  const MemoryWishes &wishes;
  std::span<const MemoryLimit> limits;
  u32 requests;
};

} // namespace

u64 MemoryPlan::totalBytes() const {
  return addSaturated(weightBytes, addSaturated(arenaBytes, kvBytes));
}

u64 MemoryPlan::kvTokens() const {
  bool anyFull = std::ranges::any_of(
      groups, [](const KvGroupInfo &group) { return group.window == 0; });
  u64 least = ~u64(0);
  for (size_t group = 0; group < groups.size(); ++group)
    if (groups[group].window == 0 || !anyFull)
      least = std::min<u64>(least, pages[group]);
  return groups.empty() ? 0 : least * pageTokens;
}

u32 MemoryPlan::requestsOf(u32 length) const {
  if (groups.empty())
    return 1;
  auto one = KvCache::pagesForSequence(groups, length, stepRows);
  u32 least = ~0u;
  for (size_t group = 0; group < groups.size(); ++group)
    least = std::min(least, pages[group] / one[group]);
  return least;
}

u64 MemoryPlan::requestsAvailable(u32 length) const {
  if (groups.empty())
    return 1;
  auto one = KvCache::pagesForSequence(groups, length, stepRows);
  std::vector<u32> none(groups.size(), 0);
  u64 reserved = KvCache::bytesFor(groups, none);
  u64 bytes = KvCache::bytesFor(groups, one) - reserved;
  return kvAvailable <= reserved ? 0 : (kvAvailable - reserved) / bytes;
}

Result<MemoryPlan> MemoryPlan::settle(StepProgram program, u32 threads,
                                      const MemoryWishes &wishes,
                                      std::span<const MemoryLimit> limits) {
  if (wishes.context > program.context)
    return fail(ErrorKind::InvalidInput,
                "a context of {} tokens was asked for; this engine's is {}; "
                "lower {}",
                wishes.context, program.context, wishes.names.context);
  if (wishes.stepRows == 0 || wishes.stepRows > 1 << 20)
    return fail(ErrorKind::InvalidInput,
                "a chunk of {} rows was asked for; {} takes 1 to {}",
                wishes.stepRows, wishes.names.stepRows, 1 << 20);
  if (wishes.requests == 0 || wishes.requests > mostRequests)
    return fail(ErrorKind::InvalidInput,
                "{} requests at a time were asked for; {} takes 1 to {}",
                wishes.requests, wishes.names.requests, mostRequests);
  return Settling(std::move(program), threads, wishes, limits).settle();
}

Result<MemoryPlan> MemoryPlan::settleHere(const StepProgram &program,
                                          u32 threads,
                                          const MemoryWishes &wishes,
                                          u64 memoryBytes,
                                          std::string_view option) {
  MemoryLimit machine{.budget = MemoryBudget::detect()};
  if (memoryBytes != 0) {
    std::array limits{MemoryLimit{.budget = {memoryBytes, option},
                                  .countsWeights = true,
                                  .option = option},
                      machine};
    return settle(program, threads, wishes, limits);
  }
  MemoryLimit comfortable = machine;
  comfortable.budget.available -=
      std::min(comfortable.budget.available / 8, headroomMost);
  // Of the address space, mapped weights have been taken already.
  comfortable.countsWeights = !machine.budget.ofAddressSpace;
  auto plan = settle(program, threads, wishes, {&comfortable, 1});
  if (plan || plan.error().kind != ErrorKind::Exhausted)
    return plan;
  MemoryWishes one = wishes;
  one.requests = 1;
  plan = settle(program, threads, one, {&machine, 1});
  if (plan)
    plan->notice += fmt::format(
        "{}only {} are available ({}) for weights of {}: requests run one at a "
        "time, and weights are read from the disk again where they do not fit",
        plan->notice.empty() ? "" : "; ", formatBytes(machine.budget.available),
        machine.budget.limitedBy, formatBytes(wishes.weightBytes));
  return plan;
}

} // namespace lathe::runtime

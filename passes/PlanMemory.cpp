#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace mlir;
using namespace lathe::ir;

namespace lathe::passes {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"

namespace {

/// First and last launch that touches a buffer.
struct Lifetime {
  int64_t first = -1;
  int64_t last = -1;
};

/// What a launch depends on: an arena slot, a buffer of the step, or a layer's
/// K or V. Two buffers with one key are the same memory.
using ResourceKey = std::tuple<int, int64_t, int64_t>;

ResourceKey resourceOf(Value buffer) {
  Operation *op = buffer.getDefiningOp();
  if (auto alloc = dyn_cast<AllocOp>(op))
    return {0, *alloc.getSlot(), 0};
  if (auto step = dyn_cast<StepBufferOp>(op))
    return {1, static_cast<int64_t>(step.getKind()), 0};
  auto pool = cast<KvPoolOp>(op);
  return {2, pool.getGroup(), pool.getOffset()};
}

KernelOpInterface kernelOf(LaunchOp launch) {
  return cast<KernelOpInterface>(
      launch->getParentOfType<ModuleOp>().lookupSymbol(launch.getKernelAttr()));
}

llvm::MapVector<AllocOp, Lifetime> lifetimesIn(ProgramOp program) {
  llvm::MapVector<AllocOp, Lifetime> lifetimes;
  int64_t index = 0;
  for (auto launch : program.getOps<LaunchOp>()) {
    // Nobody waits for a replicated launch: the next one may run beside it, so
    // it gets other memory.
    int64_t last = index + (kernelOf(launch).isReplicated() ? 1 : 0);
    for (Value buffer : launch.getBuffers())
      if (auto alloc = buffer.getDefiningOp<AllocOp>()) {
        Lifetime &life = lifetimes[alloc];
        life.first = life.first < 0 ? index : life.first;
        life.last = std::max(life.last, last);
      }
    ++index;
  }
  return lifetimes;
}

/// What the launches of a program, added in their order, must wait for.
class Dependences {
public:
  /// The earlier launches that must be complete before the next launch of the
  /// program starts, without those that others imply; ascending.
  SmallVector<int64_t> add(LaunchOp launch) {
    SmallVector<OperandInfo> infos = kernelOf(launch).operandInfos();
    auto index = static_cast<int64_t>(reaches.size());
    SmallVector<int64_t> needs;
    for (auto [buffer, info] : llvm::zip(launch.getBuffers(), infos)) {
      if (buffer.getDefiningOp<WeightRefOp>())
        continue;
      ResourceKey key = resourceOf(buffer);
      if (auto write = lastWrite.find(key); write != lastWrite.end())
        needs.push_back(write->second);
      if (info.role != Role::Read)
        needs.append(readsSince[key]);
    }
    llvm::sort(needs, std::greater<>());
    SmallVector<bool> reached(index, false);
    SmallVector<int64_t> waits;
    for (int64_t need : needs)
      if (!reached[need]) {
        waits.push_back(need);
        reach(need, reached);
      }
    llvm::sort(waits);
    for (auto [buffer, info] : llvm::zip(launch.getBuffers(), infos)) {
      if (buffer.getDefiningOp<WeightRefOp>())
        continue;
      ResourceKey key = resourceOf(buffer);
      if (info.role == Role::Read) {
        readsSince[key].push_back(index);
      } else {
        lastWrite[key] = index;
        readsSince[key].clear();
      }
    }
    reaches.push_back(std::move(reached));
    return waits;
  }

  /// Marks a launch and all that are complete once it is.
  void reach(int64_t launch, SmallVectorImpl<bool> &reached) const {
    reached[launch] = true;
    for (int64_t i = 0; i < launch; ++i)
      reached[i] = reached[i] || reaches[launch][i];
  }

private:
  std::map<ResourceKey, int64_t> lastWrite;
  std::map<ResourceKey, SmallVector<int64_t>> readsSince;
  /// reaches[i]: launches known complete once launch i is.
  SmallVector<SmallVector<bool>> reaches;
};

SizeAttr larger(SizeAttr a, SizeAttr b) {
  return SizeAttr::get(
      a.getContext(), std::max(a.getT(), b.getT()),
      std::max(a.getS(), b.getS()), std::max(a.getC(), b.getC()),
      std::max(a.getN(), b.getN()), std::max(a.getE(), b.getE()));
}

/// Bytes at typical capacities, to compare sizes of unlike parts.
int64_t weigh(SizeAttr size) {
  return 512 * size.getT() + 8 * size.getS() + 64 * size.getC() +
         8 * size.getN() + size.getE();
}

struct PlanMemoryPass : impl::PlanMemoryBase<PlanMemoryPass> {
  void runOnOperation() override {
    // Entry points never run at the same time: they share the slots.
    SmallVector<SizeAttr> slots;
    for (auto program : getOperation().getOps<ProgramOp>()) {
      assignSlots(program, slots);
      Builder builder(program.getContext());
      Dependences dependences;
      for (auto launch : program.getOps<LaunchOp>())
        launch.setWaitsAttr(
            builder.getDenseI64ArrayAttr(dependences.add(launch)));
    }
  }

private:
  void assignSlots(ProgramOp program, SmallVectorImpl<SizeAttr> &slots) {
    llvm::MapVector<AllocOp, Lifetime> lifetimes = lifetimesIn(program);
    Builder builder(program.getContext());
    std::vector<int64_t> busyUntil(slots.size(), -1);
    for (auto &[alloc, life] : lifetimes) {
      AllocOp op = alloc;
      SizeAttr size = op.getSize();
      // The free slot that grows least; of those, the one wasted least on.
      int64_t best = -1;
      std::pair<int64_t, int64_t> bestCost;
      for (auto [slot, busy] : llvm::enumerate(busyUntil)) {
        if (busy >= life.first)
          continue;
        int64_t grown = weigh(larger(slots[slot], size));
        std::pair cost = {grown - weigh(slots[slot]), grown - weigh(size)};
        if (best < 0 || cost < bestCost) {
          best = static_cast<int64_t>(slot);
          bestCost = cost;
        }
      }
      if (best < 0 || bestCost.first >= weigh(size)) {
        best = static_cast<int64_t>(slots.size());
        slots.push_back(size);
        busyUntil.push_back(-1);
      }
      slots[best] = larger(slots[best], size);
      busyUntil[best] = life.last;
      op.setSlotAttr(builder.getI64IntegerAttr(best));
    }
  }
};

} // namespace

/// A buffer's slot may hold no other buffer while it is alive.
static LogicalResult checkSlots(ProgramOp program) {
  auto lifetimes = lifetimesIn(program);
  // Programs share the slots.
  int64_t allocs = 0;
  for (auto other : program->getParentOfType<ModuleOp>().getOps<ProgramOp>())
    allocs += llvm::range_size(other.getOps<AllocOp>());
  std::map<int64_t, std::pair<AllocOp, Lifetime>> inSlot;
  for (auto &[alloc, life] : lifetimes) {
    AllocOp op = alloc;
    if (!op.getSlot() || *op.getSlot() >= allocs)
      return op.emitOpError("needs a slot below ") << allocs;
    auto [at, isNew] = inSlot.try_emplace(*op.getSlot(), op, life);
    if (isNew)
      continue;
    // In the order of their first launches.
    if (life.first <= at->second.second.last)
      return op.emitOpError("shares slot ")
             << *op.getSlot() << " with a buffer that is alive until launch "
             << at->second.second.last;
    at->second = {op, life};
  }
  return success();
}

LogicalResult checkPlan(ProgramOp program) {
  if (failed(checkSlots(program)))
    return failure();
  Dependences dependences;
  int64_t index = 0;
  for (auto launch : program.getOps<LaunchOp>()) {
    std::optional<ArrayRef<int64_t>> waits = launch.getWaits();
    if (!waits)
      return launch.emitOpError("does not say what it waits for");
    SmallVector<bool> reached(index, false);
    for (int64_t wait : *waits)
      dependences.reach(wait, reached);
    for (int64_t need : dependences.add(launch))
      if (!reached[need])
        return launch.emitOpError("must wait for launch ") << need;
    ++index;
  }
  return success();
}

} // namespace lathe::passes

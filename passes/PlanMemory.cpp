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
      if (failed(findWaits(program)))
        return signalPassFailure();
    }
  }

private:
  void assignSlots(ProgramOp program, SmallVectorImpl<SizeAttr> &slots) {
    llvm::MapVector<AllocOp, Lifetime> lifetimes;
    SymbolTableCollection symbols;
    int64_t index = 0;
    for (auto launch : program.getOps<LaunchOp>()) {
      auto kernel = symbols.lookupNearestSymbolFrom<KernelOpInterface>(
          getOperation(), launch.getKernelAttr());
      // Nobody waits for a replicated launch: the next one may run beside it,
      // so it gets other memory.
      int64_t last = index + (kernel.isReplicated() ? 1 : 0);
      for (Value buffer : launch.getBuffers())
        if (auto alloc = buffer.getDefiningOp<AllocOp>()) {
          Lifetime &life = lifetimes[alloc];
          life.first = life.first < 0 ? index : life.first;
          life.last = std::max(life.last, last);
        }
      ++index;
    }
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

  LogicalResult findWaits(ProgramOp program) {
    SymbolTableCollection symbols;
    std::map<ResourceKey, int64_t> lastWrite;
    std::map<ResourceKey, SmallVector<int64_t>> readsSince;
    // reaches[i]: launches known complete once launch i is.
    SmallVector<llvm::SmallVector<bool>> reaches;
    Builder builder(program.getContext());
    int64_t index = 0;
    for (auto launch : program.getOps<LaunchOp>()) {
      auto kernel = symbols.lookupNearestSymbolFrom<KernelOpInterface>(
          getOperation(), launch.getKernelAttr());
      SmallVector<OperandInfo> infos = kernel.operandInfos();
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
      // Keep the latest needs that no other need implies.
      llvm::sort(needs, std::greater<>());
      SmallVector<bool> reached(index, false);
      SmallVector<int64_t> waits;
      for (int64_t need : needs) {
        if (reached[need])
          continue;
        waits.push_back(need);
        reached[need] = true;
        for (int64_t i = 0; i < need; ++i)
          reached[i] |= reaches[need][i];
      }
      llvm::sort(waits);
      launch.setWaitsAttr(builder.getDenseI64ArrayAttr(waits));
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
      ++index;
    }
    return success();
  }
};

} // namespace
} // namespace lathe::passes

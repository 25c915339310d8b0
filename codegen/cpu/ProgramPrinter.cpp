#include "codegen/cpu/KernelPrinter.h"

#include "kernels/abi/StepArgs.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lathe;
using namespace lathe::ir;

namespace {

/// A launch with what the printer needs to know of it.
struct Step {
  LaunchOp launch;
  KernelOpInterface kernel;
  unsigned id;
  bool replicated;
};

/// Prints the launches of a program, once for steps of few rows, in which every
/// thread repeats the replicated launches for itself, and once for the rest, in
/// which wanted launches run for the wanted rows alone.
class ProgramPrinter {
public:
  ProgramPrinter(raw_ostream &os, ProgramOp program,
                 const DenseMap<StringAttr, unsigned> &ids,
                 const codegen::WeightOffsets &weights)
      : os(os), program(program), weights(weights) {
    auto module = program->getParentOfType<ModuleOp>();
    for (auto launch : program.getOps<LaunchOp>()) {
      auto kernel =
          cast<KernelOpInterface>(module.lookupSymbol(launch.getKernelAttr()));
      steps.push_back({launch, kernel,
                       ids.lookup(launch.getKernelAttr().getAttr()),
                       kernel.isReplicated()});
    }
  }

  void print(StringRef symbol) {
    for (bool few : {true, false}) {
      os << "static void " << symbol << (few ? "_few" : "_many")
         << "(const StepArgs *args, u32 thread, u32 threads) {\n"
         << "  u8 *const *slots = args->slots;\n"
         << "  const u8 *weights = args->weights;\n"
         << "  (void)slots, (void)weights;\n";
      if (!few && llvm::any_of(steps, readsWantedWork))
        os << "  StepArgs wanted = *args;\n"
           << "  wanted.attentionWork = args->wantedWork;\n";
      printSteps(few);
      os << "  wait(args, threads);\n}\n";
    }
    bool head = steps.front().kernel.launchRows() == LaunchRows::Head;
    os << "extern \"C\" void " << symbol
       << "(const StepArgs *args, u32 thread, u32 threads) {\n"
       << "  StepScope scope;\n"
       << "  if (args->" << (head ? "headRows" : "rows")
       << " <= maxReplicatedRows)\n"
       << "    " << symbol << "_few(args, thread, threads);\n"
       << "  else\n"
       << "    " << symbol << "_many(args, thread, threads);\n"
       << "}\n\n";
  }

private:
  /// A launch that another thread's part of `step` must not overtake.
  bool needsBarrier(Step &step, int64_t waited, bool few) {
    Step &other = steps[waited];
    if (!few || !other.replicated)
      return true;
    // Each thread reads its own copy, of the KV cache what it wrote itself; but
    // what the replicated launch reads must not be overwritten while another
    // thread is still in it.
    for (auto [buffer, info] :
         llvm::zip(step.launch.getBuffers(), step.kernel.operandInfos()))
      if (info.role != Role::Read && sharesMemory(other, buffer))
        return true;
    return false;
  }

  bool sharesMemory(Step &other, Value buffer) {
    for (auto [read, info] :
         llvm::zip(other.launch.getBuffers(), other.kernel.operandInfos())) {
      if (info.role != Role::Read || read.getDefiningOp<WeightRefOp>())
        continue;
      if (read == buffer)
        return true;
      auto a = read.getDefiningOp<AllocOp>();
      auto b = buffer.getDefiningOp<AllocOp>();
      auto s = read.getDefiningOp<StepBufferOp>();
      auto u = buffer.getDefiningOp<StepBufferOp>();
      if ((a && b && a.getSlot() == b.getSlot()) ||
          (s && u && s.getKind() == u.getKind()))
        return true;
    }
    return false;
  }

  void printSteps(bool few) {
    int64_t lastBarrier = -1; // launches up to here are complete
    for (auto [index, step] : llvm::enumerate(steps)) {
      std::optional<ArrayRef<int64_t>> waits = step.launch.getWaits();
      for (int64_t waited : waits ? *waits : ArrayRef<int64_t>())
        if (waited > lastBarrier && needsBarrier(step, waited, few)) {
          os << "  wait(args, threads);\n";
          lastBarrier = static_cast<int64_t>(index) - 1;
          break;
        }
      std::string label = codegen::labelOf(step.launch.getLoc());
      os << "  { // " << index;
      // Names come from a model file: only what cannot end the comment.
      if (llvm::all_of(label, [](char c) {
            return llvm::isAlnum(c) || StringRef("._-+, ").contains(c);
          }))
        os << ": " << label;
      os << "\n    const void *operands[] = {\n";
      bool alone = few && step.replicated;
      for (Value buffer : step.launch.getBuffers())
        os << "        " << address(buffer, few) << ",\n";
      os << "    };\n";
      if (!few && isCutByRanges(step)) {
        printRowBytes(step);
        os << "    launchWanted(args, " << index << ", lathe_kernel_" << step.id
           << ", operands, rowBytes, thread, threads);\n  }\n";
        continue;
      }
      os << "    launch("
         << (!few && readsWantedWork(step) ? "&wanted" : "args") << ", "
         << index << ", " << (alone ? "own_kernel_" : "lathe_kernel_")
         << step.id << ", operands, " << rowCount(step.kernel.launchRows())
         << ", thread, threads);\n"
         << "  }\n";
    }
  }

  /// Wanted rows of attention are in its work list; other kernels are called
  /// for one range of rows after the other.
  static bool readsWantedWork(Step &step) {
    return step.launch.getWanted() &&
           step.kernel.launchRows() == LaunchRows::Work;
  }
  static bool isCutByRanges(Step &step) {
    return step.launch.getWanted() &&
           step.kernel.launchRows() != LaunchRows::Work;
  }

  void printRowBytes(Step &step) {
    os << "    const u64 rowBytes[] = {";
    llvm::interleaveComma(
        step.kernel.operandInfos(), os,
        [&](const OperandInfo &info) { os << info.bytesPerRow; });
    os << "};\n";
  }

  StringRef rowCount(LaunchRows rows) {
    switch (rows) {
    case LaunchRows::Tokens:
    case LaunchRows::Work:
      return "args->rows";
    case LaunchRows::Sequences:
      return "args->sequences";
    case LaunchRows::Head:
      return "args->headRows";
    }
    llvm_unreachable("all row kinds handled");
  }

  std::string address(Value buffer, bool few) {
    Operation *op = buffer.getDefiningOp();
    if (auto weight = dyn_cast<WeightRefOp>(op))
      return "weights + " +
             std::to_string(weights.lookup(weight.getWeightAttr().getAttr()));
    if (auto alloc = dyn_cast<AllocOp>(op)) {
      std::string slot = "slots[" + std::to_string(*alloc.getSlot()) + "]";
      // A replicated buffer: each thread's own rows, then the shared ones.
      int64_t own = alloc.getSize().getN();
      if (own == 0)
        return slot;
      return slot + (few ? " + u64(thread) * " : " + u64(threads) * ") +
             std::to_string(own);
    }
    if (auto pool = dyn_cast<KvPoolOp>(op)) {
      std::string group =
          "args->groups[" + std::to_string(pool.getGroup()) + "]";
      return group + ".pool + u64(" + std::to_string(pool.getOffset()) +
             ") * " + group + ".pageCount";
    }
    switch (cast<StepBufferOp>(op).getKind()) {
    case StepBuffer::Hidden:
      return "args->hidden";
    case StepBuffer::HeadInput:
      return "args->headInput";
    case StepBuffer::Logits:
      return "args->logits";
    case StepBuffer::Picked:
      return "args->picked";
    }
    llvm_unreachable("all step buffers handled");
  }

  raw_ostream &os;
  ProgramOp program;
  const codegen::WeightOffsets &weights;
  SmallVector<Step> steps;
};

} // namespace

void codegen::printProgram(raw_ostream &os, ProgramOp program, StringRef symbol,
                           const DenseMap<StringAttr, unsigned> &ids,
                           const WeightOffsets &weights) {
  ProgramPrinter(os, program, ids, weights).print(symbol);
}

#include "codegen/cpu/CpuTarget.h"

#include "codegen/cpu/ClangCompiler.h"
#include "runtime/device/CpuFeatures.h"

#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace lathe;
using namespace lathe::codegen;
namespace fb = lathe::engine::fb;
using runtime::ErrorKind;
using runtime::fail;

ir::TargetInfo codegen::cpuTargetInfo() { return {}; }

static const runtime::IsaLayer *findLayer(std::string_view name) {
  for (const runtime::IsaLayer &layer : runtime::isaLayers())
    if (layer.name == name)
      return &layer;
  return nullptr;
}

runtime::Result<std::string> codegen::isaOfTarget(std::string_view target) {
  std::string known = "cpu:native";
  for (const runtime::IsaLayer &layer : runtime::isaLayers())
    known += ", cpu:" + std::string(layer.name);
  std::string_view isa = target.starts_with("cpu:") ? target.substr(4) : "";
  if (isa != "native" && !findLayer(isa))
    return fail(ErrorKind::InvalidInput, "unknown target '{}'; known are {}",
                target, known);
  return std::string(isa);
}

namespace {

fb::Role roleOf(ir::Role role) {
  switch (role) {
  case ir::Role::Read:
    return fb::Role::Read;
  case ir::Role::Write:
    return fb::Role::Write;
  case ir::Role::ReadWrite:
    return fb::Role::ReadWrite;
  }
  llvm_unreachable("all roles handled");
}

fb::Operand operandOf(Value buffer, ir::Role role,
                      const WeightOffsets &weights) {
  Operation *op = buffer.getDefiningOp();
  if (auto weight = dyn_cast<ir::WeightRefOp>(op))
    return {fb::Space::Weights, roleOf(role), 0,
            weights.lookup(weight.getWeightAttr().getAttr())};
  if (auto alloc = dyn_cast<ir::AllocOp>(op))
    return {fb::Space::Arena, roleOf(role),
            static_cast<uint32_t>(*alloc.getSlot()), 0};
  if (auto pool = dyn_cast<ir::KvPoolOp>(op))
    return {fb::Space::Kv, roleOf(role), static_cast<uint32_t>(pool.getGroup()),
            static_cast<uint64_t>(pool.getOffset())};
  auto step = cast<ir::StepBufferOp>(op);
  return {fb::Space::Step, roleOf(role), static_cast<uint32_t>(step.getKind()),
          0};
}

/// The model layer in a label such as "blk.3.attn_q", or -1.
int32_t layerOf(StringRef label) {
  if (!label.consume_front("blk."))
    return -1;
  int32_t layer = -1;
  if (label.consumeInteger(10, layer))
    return -1;
  return layer;
}

} // namespace

fb::ProgramT codegen::describeProgram(ModuleOp module,
                                      const ir::TargetInfo &target,
                                      const WeightOffsets &weights) {
  fb::ProgramT program;
  program.attention_chunk = static_cast<uint32_t>(target.attentionChunk);
  program.attention_row_tile = static_cast<uint32_t>(target.attentionRowTile);
  program.numerics_id =
      "lathe-1 chunk=" + std::to_string(target.attentionChunk);
  DenseMap<StringAttr, uint32_t> ids;
  for (auto kernel : module.getOps<ir::KernelOpInterface>()) {
    auto id = static_cast<uint32_t>(ids.size());
    ids[SymbolTable::getSymbolName(kernel)] = id;
    auto entry = std::make_unique<fb::KernelT>();
    entry->symbol = "lathe_kernel_" + std::to_string(id);
    entry->skeleton = kernel.skeletonName().str();
    entry->summary = summarize(kernel);
    entry->weight_bytes = static_cast<uint64_t>(kernel.weightBytes());
    entry->macs_per_row = static_cast<uint64_t>(kernel.macsPerRow());
    for (const ir::OperandInfo &info : kernel.operandInfos()) {
      entry->operand_names +=
          (entry->operand_names.empty() ? "" : " ") + info.name;
      entry->operand_row_bytes.push_back(
          static_cast<uint64_t>(info.bytesPerRow));
    }
    program.kernels.push_back(std::move(entry));
  }
  for (auto source : module.getOps<ir::ProgramOp>()) {
    auto entry = std::make_unique<fb::EntryPointT>();
    entry->name = source.getSymName().str();
    entry->symbol = "lathe_" + entry->name + "_v1";
    for (auto launch : source.getOps<ir::LaunchOp>()) {
      auto kernel = cast<ir::KernelOpInterface>(
          module.lookupSymbol(launch.getKernelAttr()));
      auto made = std::make_unique<fb::LaunchT>();
      made->kernel = ids.lookup(launch.getKernelAttr().getAttr());
      for (auto [buffer, info] :
           llvm::zip(launch.getBuffers(), kernel.operandInfos()))
        made->operands.push_back(operandOf(buffer, info.role, weights));
      made->rows = static_cast<fb::Rows>(kernel.launchRows());
      made->wanted = launch.getWanted();
      std::optional<ArrayRef<int64_t>> waits = launch.getWaits();
      for (int64_t wait : waits ? *waits : ArrayRef<int64_t>())
        made->waits.push_back(static_cast<uint32_t>(wait));
      made->label = labelOf(launch.getLoc());
      made->layer = layerOf(made->label);
      entry->launches.push_back(std::move(made));
    }
    program.entries.push_back(std::move(entry));
    for (auto alloc : source.getOps<ir::AllocOp>()) {
      auto slot = static_cast<size_t>(*alloc.getSlot());
      if (program.slots.size() <= slot)
        program.slots.resize(slot + 1, fb::Size(0, 0, 0, 0, 0));
      ir::SizeAttr size = alloc.getSize();
      fb::Size &largest = program.slots[slot];
      auto most = [](uint64_t a, int64_t b) {
        return std::max(a, static_cast<uint64_t>(b));
      };
      largest = fb::Size(
          most(largest.t(), size.getT()), most(largest.s(), size.getS()),
          most(largest.c(), size.getC()), most(largest.n(), size.getN()),
          most(largest.e(), size.getE()));
    }
  }
  return program;
}

runtime::Result<EngineTarget>
codegen::compileForCpu(ModuleOp module, const WeightOffsets &weights,
                       const std::string &isa, const std::string &saveTemps) {
  const runtime::IsaLayer *layer = findLayer(isa);
  EngineTarget target;
  target.name = "cpu:" + isa;
  target.isa = isa;
  target.requiredFeatures = layer->features;
  target.source = printModule(module, weights);
  auto object =
      compileSharedObject(target.source, *layer, "cpu-" + isa, saveTemps);
  if (!object)
    return runtime::failFrom(object);
  target.object = std::move(*object);
  return target;
}

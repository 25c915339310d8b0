#include "codegen/EngineParts.h"

#include "codegen/cpu/CpuTarget.h"
#include "ir/kernel/Kernel.h"
#include "ir/lathe/CacheElement.h"
#include "kernels/abi/StepArgs.h"
#include "runtime/support/KvTypeNames.h"
#include "runtime/support/Quote.h"

using namespace mlir;
using namespace lathe;
using namespace lathe::codegen;
namespace fb = lathe::engine::fb;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::Result;

namespace {

/// The bytes of a weight that an engine has packed already.
Result<WeightProducer> copyFrom(const runtime::Engine &engine,
                                const EngineWeight &weight) {
  for (const auto *stored : *engine.manifest().weights()) {
    if (stored->name()->string_view() != weight.name)
      continue;
    if (kernels::formatFromName(stored->format()->string_view()) !=
            weight.format ||
        stored->layout()->string_view() != weight.layout ||
        stored->rows() != weight.rows || stored->k() != weight.k)
      break;
    auto bytes = engine.weights().subspan(stored->offset(), stored->bytes());
    return [bytes](const ByteSink &sink) { return sink(bytes); };
  }
  return fail(
      ErrorKind::Unsupported,
      "weight '{}' is not stored as this compiler packs it; compile the "
      "model file again",
      weight.name);
}

/// True for a matrix that holds another's parameters again.
bool isCopy(Attribute recipe) {
  auto transform = dyn_cast<ir::RecipeAttr>(recipe);
  if (transform && transform.getTransform() == "pack")
    transform = dyn_cast<ir::RecipeAttr>(transform.getInputs()[0]);
  return transform && transform.getTransform() == "coarse";
}

Result<EngineWeight> describeWeight(ir::WeightOp op, const WeightStore &store,
                                    const runtime::Engine *engine) {
  RankedTensorType type = op.getTensorType();
  EngineWeight weight;
  weight.name = op.getSymName().str();
  weight.modelName = labelOf(op.getLoc());
  if (auto block = dyn_cast<ir::BlockType>(type.getElementType())) {
    weight.format = block.getFormat();
    weight.layout = ir::stringifyLayout(block.getLayout()).str();
    weight.rows = static_cast<uint64_t>(type.getDimSize(0));
    weight.k = static_cast<uint64_t>(type.getDimSize(1));
  } else {
    weight.layout = "rows";
    weight.k = static_cast<uint64_t>(type.getShape().back());
    weight.rows = static_cast<uint64_t>(type.getNumElements()) / weight.k;
  }
  if (engine) {
    auto copy = copyFrom(*engine, weight);
    if (!copy)
      return failFrom(copy);
    weight.produce = std::move(*copy);
    return weight;
  }
  weight.produce = [op, &store](const ByteSink &sink) {
    return store.stream(op, sink);
  };
  return weight;
}

} // namespace

Result<PlacedWeights> codegen::placeWeights(ModuleOp module,
                                            const WeightStore &store,
                                            const runtime::Engine *engine) {
  PlacedWeights placed;
  WeightPlacer placer;
  for (auto op : module.getOps<ir::WeightOp>()) {
    auto weight = describeWeight(op, store, engine);
    if (!weight)
      return failFrom(weight);
    auto place =
        placer.add(weight->format, weight->layout, weight->rows, weight->k);
    if (!place)
      return failFrom(place, weight->name);
    placed.offsets[op.getSymNameAttr()] = place->offset;
    placed.bytes = place->offset + place->bytes;
    if (isa<ir::BlockType>(op.getTensorType().getElementType()) &&
        !isCopy(op.getRecipe()))
      placed.parameters += weight->rows * weight->k;
    placed.weights.push_back(std::move(*weight));
  }
  return placed;
}

fb::ModelT codegen::describeModel(ir::ModelAttr facts) {
  fb::ModelT model;
  model.architecture = facts.getArchitecture().str();
  model.name = facts.getName().str();
  model.vocab = static_cast<uint32_t>(facts.getVocab());
  model.hidden = static_cast<uint32_t>(facts.getHidden());
  model.layers = static_cast<uint32_t>(facts.getLayers());
  model.context = static_cast<uint32_t>(facts.getPositions());
  return model;
}

/// Whether a kernel over the KV cache has the shape of its group.
template <typename Kernel>
static bool fitsGroup(ModuleOp module, Kernel kernel,
                      std::optional<int64_t> window = std::nullopt) {
  return llvm::any_of(module.getOps<ir::KvGroupOp>(), [&](ir::KvGroupOp group) {
    return group.getId() == kernel.getGroup() &&
           group.getKvHeads() == kernel.getKvHeads() &&
           group.getHeadDim() == kernel.getHeadDim() &&
           group.getElement() == kernel.getElement() &&
           (!window || static_cast<int64_t>(group.getWindow()) == *window);
  });
}

/// Rotated pairs of a kernel that reads a rotary table; 0 of others.
static int64_t ropePairs(ir::KernelOpInterface kernel) {
  if (auto rope = dyn_cast<ir::RopeAppendKernelOp>(kernel.getOperation()))
    return rope.getRopePairs();
  auto contract = dyn_cast<ir::ContractKernelOp>(kernel.getOperation());
  return contract && contract.getOp() == ir::ContractOp::Rope
             ? contract.getDims()[3]
             : 0;
}

/// Whether what a launch passes beside rows fits its kernel: the rotary table
/// has an entry for each position, the partials of attention have room.
static bool fitsLaunch(ir::LaunchOp launch, ir::KernelOpInterface kernel,
                       int64_t positions) {
  auto module = launch->getParentOfType<ModuleOp>();
  auto attention = dyn_cast<ir::AttentionKernelOp>(kernel.getOperation());
  for (auto [buffer, info] :
       llvm::zip(launch.getBuffers(), kernel.operandInfos())) {
    if (info.name == "table") {
      auto ref = buffer.getDefiningOp<ir::WeightRefOp>();
      auto table = ref ? module.lookupSymbol<ir::WeightOp>(ref.getWeightAttr())
                       : ir::WeightOp();
      if (!table || !table.getTensorType().getElementType().isF32() ||
          table.getTensorType().getNumElements() !=
              positions * ropePairs(kernel) * 2)
        return false;
    }
    if (attention && info.name == "partials") {
      auto alloc = buffer.getDefiningOp<ir::AllocOp>();
      int64_t set = attention.getHeads() * (attention.getHeadDim() + 2) * 4;
      if (!alloc || alloc.getSize().getC() < set)
        return false;
    }
  }
  return true;
}

Result<void> codegen::checkModel(ModuleOp module, ir::ModelAttr facts) {
  auto check = [](std::string_view what, int64_t stated,
                  int64_t computed) -> Result<void> {
    if (stated == computed)
      return {};
    return fail(ErrorKind::InvalidInput,
                "'lathe.model' says {} = {}, but the kernels compute {}", what,
                stated, computed);
  };
  for (auto embed : module.getOps<ir::EmbedKernelOp>())
    if (auto ok = check("hidden", facts.getHidden(), embed.getK()); !ok)
      return ok;
  auto misfit = [](Operation *op) -> Result<void> {
    return fail(ErrorKind::InvalidInput,
                "kernel '@{}' does not fit its KV group, its buffers or the "
                "positions of 'lathe.model'",
                SymbolTable::getSymbolName(op).getValue().str());
  };
  for (auto kernel : module.getOps<ir::RopeAppendKernelOp>())
    if (!fitsGroup(module, kernel))
      return misfit(kernel);
  for (auto kernel : module.getOps<ir::AttentionKernelOp>())
    if (!fitsGroup(module, kernel, kernel.getWindow()) ||
        kernel.getChunk() != cpuTargetInfo().attentionChunk)
      return misfit(kernel);
  for (auto program : module.getOps<ir::ProgramOp>())
    for (auto launch : program.getOps<ir::LaunchOp>()) {
      auto kernel = cast<ir::KernelOpInterface>(
          module.lookupSymbol(launch.getKernelAttr()));
      if (!fitsLaunch(launch, kernel, facts.getPositions()))
        return misfit(kernel);
      auto contract = dyn_cast<ir::ContractKernelOp>(kernel.getOperation());
      for (auto [buffer, info] :
           llvm::zip(launch.getBuffers(), kernel.operandInfos())) {
        auto step = buffer.getDefiningOp<ir::StepBufferOp>();
        int64_t bytes = info.bytesPerRow;
        if (contract && contract.getOp() == ir::ContractOp::Linear &&
            info.role == ir::Role::Write)
          bytes = contract.getDims()[1] * 4;
        if (!step || bytes == 0 || step.getKind() == ir::StepBuffer::Picked)
          continue;
        bool logits = step.getKind() == ir::StepBuffer::Logits;
        if (auto ok =
                check(logits ? "vocab" : "hidden",
                      logits ? facts.getVocab() : facts.getHidden(), bytes / 4);
            !ok)
          return ok;
      }
    }
  return {};
}

std::vector<fb::KvGroupT> codegen::describeGroups(ModuleOp module) {
  std::vector<fb::KvGroupT> groups;
  for (auto op : module.getOps<ir::KvGroupOp>()) {
    fb::KvGroupT &group = groups.emplace_back();
    group.id = static_cast<uint32_t>(op.getId());
    group.kind = op.getKind() == ir::KvKind::Window ? fb::KvKind::Window
                                                    : fb::KvKind::Full;
    group.window = static_cast<uint32_t>(op.getWindow());
    group.page_tokens = pageTokens;
    group.page_bytes = static_cast<uint64_t>(op.getPageBytes());
    group.dtype = kvTypeName(*ir::cacheType(op.getElement()));
    group.kv_heads = static_cast<uint32_t>(op.getKvHeads());
    group.head_dim = static_cast<uint32_t>(op.getHeadDim());
    for (auto kernel : module.getOps<ir::AttentionKernelOp>())
      if (kernel.getGroup() == op.getId())
        group.query_heads = static_cast<uint32_t>(kernel.getHeads());
    group.layers.assign(op.getLayers().begin(), op.getLayers().end());
    group.k_offsets.assign(op.getKOffsets().begin(), op.getKOffsets().end());
    group.v_offsets.assign(op.getVOffsets().begin(), op.getVOffsets().end());
  }
  return groups;
}

std::vector<fb::SourceFileT> codegen::describeSources(ArrayAttr files) {
  std::vector<fb::SourceFileT> sources;
  if (!files)
    return sources;
  for (Attribute attr : files) {
    auto file = cast<ir::FileAttr>(attr);
    fb::SourceFileT &source = sources.emplace_back();
    source.name = runtime::displayPath(file.getName());
    source.bytes = file.getBytes();
    source.sha256 = file.getSha256().str();
  }
  return sources;
}

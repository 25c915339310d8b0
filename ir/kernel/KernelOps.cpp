#include "ir/kernel/Kernel.h"

#include "ir/lathe/CacheElement.h"
#include "kernels/abi/StepArgs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lathe;
using namespace lathe::ir;

#include "ir/kernel/KernelInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "ir/kernel/KernelOps.cpp.inc"

namespace {

/// Bytes of `rows` rows of a packed matrix (16-row groups padded).
int64_t blockBytes(BlockType type, int64_t rows, int64_t k) {
  const kernels::FormatTraits &traits = kernels::traitsOf(type.getFormat());
  int64_t padded = (rows + 15) / 16 * 16;
  return padded * ((k + traits.blockElems - 1) / traits.blockElems) *
         traits.blockBytes;
}

int64_t sideBytesPerRow(Side side, int64_t n) {
  switch (side) {
  case Side::Element:
    return n * 4;
  case Side::Row:
    return 4;
  case Side::Column:
    return 0;
  }
  llvm_unreachable("all sides handled");
}

/// An element region: one block of `values` f32 arguments, ops of arith and
/// math on f32 only, one kernel.yield at the end.
LogicalResult verifyElementRegion(Operation *op, Region &region,
                                  size_t values) {
  if (!region.hasOneBlock())
    return op->emitOpError("needs element regions of one block");
  Block &block = region.front();
  if (block.getNumArguments() != values ||
      !llvm::all_of(block.getArgumentTypes(),
                    [](Type type) { return type.isF32(); }))
    return op->emitOpError("needs an element region of ")
           << values << " f32 arguments, not " << block.getNumArguments();
  if (block.empty() || !isa<YieldOp>(block.back()))
    return op->emitOpError("needs element regions that end in kernel.yield");
  for (Operation &inner : block) {
    if (isa<YieldOp>(inner))
      continue;
    if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
             arith::NegFOp, arith::ConstantOp, math::FmaOp, math::ExpOp,
             math::TanhOp, math::AbsFOp, math::SqrtOp>(inner))
      return inner.emitOpError(
          "is not allowed in an element region (branch-free "
          "arith and math on f32)");
    if (!llvm::all_of(inner.getResultTypes(),
                      [](Type type) { return type.isF32(); }))
      return inner.emitOpError("must give f32 in an element region");
  }
  return success();
}

/// Sizes of a kernel: positive, and small enough that a product of two of them
/// in bytes fits 64 bits.
LogicalResult verifyCounts(Operation *op, StringRef what,
                           ArrayRef<int64_t> counts) {
  constexpr int64_t largest = int64_t(1) << 28;
  for (int64_t count : counts)
    if (count <= 0 || count > largest)
      return op->emitOpError("needs ")
             << what << " of 1 to 2^28, not " << count;
  return success();
}

/// Query heads in whole groups of KV heads.
LogicalResult verifyHeads(Operation *op, int64_t heads, int64_t kvHeads,
                          int64_t headDim) {
  if (failed(verifyCounts(op, "heads, kv_heads and head_dim",
                          {heads, kvHeads, headDim})))
    return failure();
  if (heads % kvHeads != 0)
    return op->emitOpError("needs heads in whole groups of kv_heads");
  return success();
}

/// A weight operand: a matrix of blocks or, with `block` null, a vector of k
/// f32.
OperandInfo weightInfo(std::string name, BlockType block, int64_t rows,
                       int64_t k) {
  return {std::move(name), Role::Read, 0, block, rows, k};
}
OperandInfo vectorInfo(std::string name, int64_t k) {
  return weightInfo(std::move(name), {}, 1, k);
}

OperandInfo sideInfo(std::string name, Side side, int64_t n) {
  if (side == Side::Column)
    return vectorInfo(std::move(name), n);
  return {std::move(name), Role::Read, sideBytesPerRow(side, n)};
}

/// Whether a weight of this type is what an operand must be, in any layout.
bool isSuch(RankedTensorType type, const OperandInfo &info) {
  auto block = dyn_cast<BlockType>(type.getElementType());
  if (!info.block)
    return type.getElementType().isF32() &&
           type.getNumElements() == info.rows * info.k;
  return block && block.getFormat() == info.block.getFormat() &&
         type.getRank() == 2 && type.getDimSize(0) == info.rows &&
         type.getDimSize(1) == info.k;
}

/// Whether a buffer holds the rows that a launch of `rows` writes or reads.
bool hasRoom(SizeAttr size, LaunchRows rows, int64_t bytesPerRow) {
  if (size.getN() != 0 && size.getN() < maxReplicatedRows * bytesPerRow)
    return false;
  return rows == LaunchRows::Head ? size.getE() >= maxHeadRows * bytesPerRow
                                  : size.getT() >= bytesPerRow;
}

} // namespace

int64_t lathe::ir::rowStoreBytes(Store store, int64_t n) {
  if (store == Store::F32)
    return n * 4;
  return (n + activationBlockElems - 1) / activationBlockElems *
         static_cast<int64_t>(sizeof(ActivationBlock));
}

//===----------------------------------------------------------------------===//
// embed
//===----------------------------------------------------------------------===//

LogicalResult EmbedKernelOp::verify() {
  if (failed(verifyCounts(*this, "vocab and k", {getVocab(), getK()})))
    return failure();
  return verifyElementRegion(*this, getMap(), 1);
}

SmallVector<OperandInfo> EmbedKernelOp::operandInfos() {
  return {
      weightInfo("weight", cast<BlockType>(getWeight()), getVocab(), getK()),
      {"out", Role::Write, getK() * 4}};
}
StringRef EmbedKernelOp::skeletonName() { return "embed"; }
LaunchRows EmbedKernelOp::launchRows() { return LaunchRows::Tokens; }
int64_t EmbedKernelOp::weightBytes() { return 0; }
int64_t EmbedKernelOp::macsPerRow() { return 0; }

//===----------------------------------------------------------------------===//
// rowwise
//===----------------------------------------------------------------------===//

LogicalResult RowwiseKernelOp::verify() {
  if (failed(verifyCounts(*this, "k", {getK()})))
    return failure();
  if (getStages().empty() || getStages().size() != getMaps().size())
    return emitOpError("needs one region per stage");
  bool stored = false;
  for (auto [attr, region] : llvm::zip(getStages(), getMaps())) {
    auto stage = cast<StageAttr>(attr);
    if (!stage.getEpsilon().getType().isF32())
      return emitOpError("needs an epsilon of f32");
    if (failed(verifyElementRegion(*this, region, 1 + stage.getSides().size())))
      return failure();
    stored |= !stage.getStores().empty();
  }
  if (!stored)
    return emitOpError("stores nothing");
  return success();
}

SmallVector<OperandInfo> RowwiseKernelOp::operandInfos() {
  SmallVector<OperandInfo> infos = {{"x", Role::Read, getK() * 4}};
  for (auto [index, attr] : llvm::enumerate(getStages()))
    for (auto [i, side] : llvm::enumerate(cast<StageAttr>(attr).getSides()))
      infos.push_back(
          sideInfo(llvm::formatv("side{0}_{1}", index, i).str(), side, getK()));
  for (auto [index, attr] : llvm::enumerate(getStages()))
    for (auto [i, store] : llvm::enumerate(cast<StageAttr>(attr).getStores()))
      infos.push_back({llvm::formatv("out{0}_{1}", index, i).str(), Role::Write,
                       rowStoreBytes(store, getK())});
  return infos;
}
StringRef RowwiseKernelOp::skeletonName() { return "rowwise"; }
LaunchRows RowwiseKernelOp::launchRows() { return getRows(); }
int64_t RowwiseKernelOp::weightBytes() {
  int64_t bytes = 0;
  for (Attribute attr : getStages())
    for (Side side : cast<StageAttr>(attr).getSides())
      bytes += side == Side::Column ? getK() * 4 : 0;
  return bytes;
}
int64_t RowwiseKernelOp::macsPerRow() { return 0; }

//===----------------------------------------------------------------------===//
// gemm
//===----------------------------------------------------------------------===//

LogicalResult GemmKernelOp::verify() {
  if (failed(verifyCounts(*this, "k", {getK()})))
    return failure();
  if (getSegments().empty() || getSegments().size() != getEpilogues().size())
    return emitOpError("needs one region per segment");
  for (auto [attr, region] : llvm::zip(getSegments(), getEpilogues())) {
    auto segment = cast<SegmentAttr>(attr);
    const kernels::FormatTraits &traits =
        kernels::traitsOf(segment.getWeight().getFormat());
    if (failed(verifyCounts(*this, "n", {segment.getN()})))
      return failure();
    if (getK() % traits.blockElems != 0)
      return emitOpError("has k = ")
             << getK() << ", not a multiple of " << StringRef(traits.mnemonic)
             << "'s block";
    bool floats = kernels::isFloatFormat(segment.getWeight().getFormat());
    if (floats != (getInput() == Store::F32))
      return emitOpError("needs q8 input for quantized weights and f32 input "
                         "for float weights");
    if (segment.getPaired() && segment.getN() % 16 != 0)
      return emitOpError("pairs 16-row groups; n = ") << segment.getN();
    if (segment.getStore() == Store::Q8 && segment.getN() % 32 != 0)
      return emitOpError("stores whole q8 blocks; n = ") << segment.getN();
    if (failed(verifyElementRegion(*this, region,
                                   (segment.getPaired() ? 2 : 1) +
                                       segment.getSides().size())))
      return failure();
  }
  return success();
}

SmallVector<OperandInfo> GemmKernelOp::operandInfos() {
  SmallVector<OperandInfo> infos = {
      {"x", Role::Read, rowStoreBytes(getInput(), getK())}};
  for (auto [index, attr] : llvm::enumerate(getSegments())) {
    auto segment = cast<SegmentAttr>(attr);
    infos.push_back(weightInfo(
        llvm::formatv("weight{0}", index).str(), segment.getWeight(),
        segment.getPaired() ? 2 * segment.getN() : segment.getN(), getK()));
  }
  for (auto [index, attr] : llvm::enumerate(getSegments())) {
    auto segment = cast<SegmentAttr>(attr);
    for (auto [i, side] : llvm::enumerate(segment.getSides()))
      infos.push_back(sideInfo(llvm::formatv("side{0}_{1}", index, i).str(),
                               side, segment.getN()));
  }
  for (auto [index, attr] : llvm::enumerate(getSegments())) {
    auto segment = cast<SegmentAttr>(attr);
    infos.push_back({llvm::formatv("out{0}", index).str(), Role::Write,
                     rowStoreBytes(segment.getStore(), segment.getN())});
  }
  return infos;
}
StringRef GemmKernelOp::skeletonName() { return "gemm"; }
LaunchRows GemmKernelOp::launchRows() { return getRows(); }
int64_t GemmKernelOp::weightBytes() {
  int64_t bytes = 0;
  for (Attribute attr : getSegments()) {
    auto segment = cast<SegmentAttr>(attr);
    int64_t rows = segment.getPaired() ? 2 * segment.getN() : segment.getN();
    bytes += blockBytes(segment.getWeight(), rows, getK());
    for (Side side : segment.getSides())
      bytes += side == Side::Column ? segment.getN() * 4 : 0;
  }
  return bytes;
}
int64_t GemmKernelOp::macsPerRow() {
  int64_t macs = 0;
  for (Attribute attr : getSegments()) {
    auto segment = cast<SegmentAttr>(attr);
    macs += (segment.getPaired() ? 2 : 1) * segment.getN() * getK();
  }
  return macs;
}

//===----------------------------------------------------------------------===//
// pick
//===----------------------------------------------------------------------===//

LogicalResult PickKernelOp::verify() {
  if (failed(verifyCounts(*this, "k and n", {getK(), getN()})))
    return failure();
  if (cast<BlockType>(getWeight()).getFormat() != kernels::Format::Q8_0 ||
      cast<BlockType>(getCoarse()).getFormat() != kernels::Format::Q5_0)
    return emitOpError("needs a weight of q8_0 and a coarse one of q5_0");
  if (getK() % activationBlockElems != 0)
    return emitOpError("has k = ") << getK() << ", not a multiple of 32";
  return success();
}

SmallVector<OperandInfo> PickKernelOp::operandInfos() {
  return {{"x", Role::Read, rowStoreBytes(Store::Q8, getK())},
          weightInfo("weight", cast<BlockType>(getWeight()), getN(), getK()),
          weightInfo("coarse", cast<BlockType>(getCoarse()), getN(), getK()),
          vectorInfo("coarse_errors", getN()),
          {"bounds", Role::Write, getN() * 4},
          {"state", Role::Write, pickStateBytes},
          {"picked", Role::Write, static_cast<int64_t>(sizeof(PickResult))}};
}
StringRef PickKernelOp::skeletonName() { return "pick"; }
LaunchRows PickKernelOp::launchRows() { return LaunchRows::Head; }
int64_t PickKernelOp::weightBytes() {
  // Of the weight itself only the few rows that may win are read.
  return blockBytes(cast<BlockType>(getCoarse()), getN(), getK()) + 4 * getN();
}
int64_t PickKernelOp::macsPerRow() { return getN() * getK(); }

//===----------------------------------------------------------------------===//
// rope_append, attention
//===----------------------------------------------------------------------===//

LogicalResult RopeAppendKernelOp::verify() {
  if (failed(verifyHeads(*this, getHeads(), getKvHeads(), getHeadDim())))
    return failure();
  if (getRopePairs() < 0 || getRopePairs() > getHeadDim() / 2)
    return emitOpError("rotates at most head_dim / 2 pairs");
  if (!cacheType(getElement()))
    return emitOpError("stores f16, bf16, f32 or i8, not ") << getElement();
  if (getOwnChunk() < 0 || getOwnChunk() % pageTokens != 0)
    return emitOpError("own_chunk is a multiple of ") << pageTokens << " or 0";
  return success();
}

SmallVector<OperandInfo> RopeAppendKernelOp::operandInfos() {
  int64_t q = getHeads() * getHeadDim() * 4,
          kv = getKvHeads() * getHeadDim() * 4;
  SmallVector<OperandInfo> infos = {
      {"q", Role::Read, q}, {"k", Role::Read, kv}, {"v", Role::Read, kv}};
  if (getRopePairs() > 0)
    infos.push_back({"table", Role::Read});
  if (getQkNorm()) {
    infos.push_back(vectorInfo("q_norm", getHeadDim()));
    infos.push_back(vectorInfo("k_norm", getHeadDim()));
  }
  infos.push_back({"k_pool", Role::Write});
  infos.push_back({"v_pool", Role::Write});
  infos.push_back({"q_out", Role::Write, q});
  return infos;
}
StringRef RopeAppendKernelOp::skeletonName() { return "rope_append"; }
LaunchRows RopeAppendKernelOp::launchRows() { return LaunchRows::Tokens; }
int64_t RopeAppendKernelOp::weightBytes() {
  return getQkNorm() ? 2 * getHeadDim() * 4 : 0;
}
int64_t RopeAppendKernelOp::macsPerRow() { return 0; }

LogicalResult AttentionKernelOp::verify() {
  if (failed(verifyHeads(*this, getHeads(), getKvHeads(), getHeadDim())))
    return failure();
  if (getChunk() <= 0 || getChunk() % pageTokens != 0)
    return emitOpError("needs a chunk of whole pages");
  if (!cacheType(getElement()))
    return emitOpError("reads f16, bf16, f32 or i8, not ") << getElement();
  if (getElement().isInteger(8) && getChunk() % activationBlockElems != 0)
    return emitOpError("reads i8 in blocks of ")
           << activationBlockElems << " keys; chunk = " << getChunk();
  if (getStore() == Store::Q8 && getHeadDim() % activationBlockElems != 0)
    return emitOpError("stores whole q8 blocks per head");
  return success();
}

SmallVector<OperandInfo> AttentionKernelOp::operandInfos() {
  int64_t n = getHeads() * getHeadDim();
  return {{"q", Role::Read, n * 4},
          {"k_pool", Role::Read},
          {"v_pool", Role::Read},
          {"partials", Role::Write},
          {"out", Role::Write, rowStoreBytes(getStore(), n)}};
}
StringRef AttentionKernelOp::skeletonName() { return "attention"; }
LaunchRows AttentionKernelOp::launchRows() { return LaunchRows::Work; }
int64_t AttentionKernelOp::weightBytes() { return 0; }
int64_t AttentionKernelOp::macsPerRow() { return 0; }

//===----------------------------------------------------------------------===//
// contract
//===----------------------------------------------------------------------===//

LogicalResult ContractKernelOp::verify() {
  size_t dims = 3, maps = 0;
  switch (getOp()) {
  case ContractOp::Matmul:
  case ContractOp::MatmulTransposed:
  case ContractOp::RepeatHeads:
  case ContractOp::Rope:
    dims = 4;
    break;
  case ContractOp::Map:
  case ContractOp::Combine:
    maps = 1;
    break;
  case ContractOp::Linear:
    dims = 2;
    if (!getWeight())
      return emitOpError("of a linear needs the type of its weight");
    break;
  default:
    break;
  }
  if (getDims().size() != dims)
    return emitOpError("needs ") << dims << " dims";
  // Rows are not known before a step.
  SmallVector<int64_t> counts(getDims());
  llvm::erase(counts, -1);
  if (failed(verifyCounts(*this, "dims (or -1 for the rows)", counts)))
    return failure();
  ArrayRef<int64_t> d = getDims();
  if (getOp() == ContractOp::Rope && d[3] > d[2] / 2)
    return emitOpError("rotates at most head_dim / 2 pairs");
  if (getOp() == ContractOp::Attention &&
      failed(verifyHeads(*this, d[0], d[1], d[2])))
    return failure();
  if (getOp() == ContractOp::Linear) {
    const kernels::FormatTraits &traits =
        kernels::traitsOf(cast<BlockType>(*getWeight()).getFormat());
    if (counts.size() != 2 || d[0] % traits.blockElems != 0)
      return emitOpError("has k = ")
             << d[0] << ", not a multiple of " << StringRef(traits.mnemonic)
             << "'s block";
  }
  if (getMaps().size() != maps)
    return emitOpError("needs ") << maps << " element regions";
  if (maps == 1)
    return verifyElementRegion(*this, getMaps()[0],
                               getOp() == ContractOp::Combine ? 2 : 1);
  return success();
}

SmallVector<OperandInfo> ContractKernelOp::operandInfos() {
  SmallVector<OperandInfo> infos;
  auto reads = [&](std::initializer_list<const char *> names) {
    for (const char *name : names)
      infos.push_back({name, Role::Read});
  };
  switch (getOp()) {
  case ContractOp::Matmul:
  case ContractOp::MatmulTransposed:
  case ContractOp::Combine:
    reads({"a", "b"});
    break;
  case ContractOp::Norm:
    reads({"x", "weight"});
    break;
  case ContractOp::Rope:
    reads({"x", "table"});
    break;
  case ContractOp::Attention:
    reads({"q", "k", "v"});
    break;
  case ContractOp::Linear:
    reads({"x"});
    infos.push_back(weightInfo("weight", cast<BlockType>(*getWeight()),
                               getDims()[1], getDims()[0]));
    if (getBias())
      infos.push_back(vectorInfo("bias", getDims()[1]));
    break;
  default:
    reads({"x"});
    break;
  }
  infos.push_back({"out", Role::Write});
  return infos;
}
StringRef ContractKernelOp::skeletonName() { return "contract"; }
LaunchRows ContractKernelOp::launchRows() { return LaunchRows::Tokens; }
int64_t ContractKernelOp::weightBytes() {
  if (getOp() != ContractOp::Linear)
    return 0;
  return blockBytes(cast<BlockType>(*getWeight()), getDims()[1], getDims()[0]);
}
int64_t ContractKernelOp::macsPerRow() {
  return getOp() == ContractOp::Linear ? getDims()[0] * getDims()[1] : 0;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

LogicalResult ProgramOp::verify() {
  int64_t index = 0;
  for (auto launch : getBody().front().getOps<LaunchOp>()) {
    if (std::optional<ArrayRef<int64_t>> waits = launch.getWaits())
      for (int64_t wait : *waits)
        if (wait < 0 || wait >= index)
          return launch.emitOpError("is launch ")
                 << index << " and cannot wait for launch " << wait;
    ++index;
  }
  return success();
}

LogicalResult AllocOp::verify() {
  SizeAttr size = getSize();
  for (int64_t part :
       {size.getT(), size.getS(), size.getC(), size.getN(), size.getE()})
    if (part < 0)
      return emitOpError("has a negative part in ") << size;
  if (getSlot() && *getSlot() < 0)
    return emitOpError("has slot ") << *getSlot();
  return success();
}

LogicalResult WeightRefOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success(lookupWeight(*this, getWeightAttr(), symbols) != nullptr);
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  Operation *callee = symbols.lookupNearestSymbolFrom(
      (*this)->getParentOfType<ModuleOp>(), getKernelAttr());
  auto kernel = dyn_cast_or_null<KernelOpInterface>(callee);
  if (!kernel)
    return emitOpError("names ")
           << getKernelAttr() << ", which is not a kernel";
  SmallVector<OperandInfo> infos = kernel.operandInfos();
  if (getBuffers().size() != infos.size())
    return emitOpError("passes ")
           << getBuffers().size() << " buffers to " << getKernelAttr()
           << ", which takes " << infos.size();
  for (auto [buffer, info] : llvm::zip(getBuffers(), infos)) {
    auto ref = buffer.getDefiningOp<WeightRefOp>();
    auto alloc = buffer.getDefiningOp<AllocOp>();
    if (info.rows != 0 && !ref)
      return emitOpError("passes no weight as ")
             << info.name << " of " << getKernelAttr();
    if (info.bytesPerRow != 0 && ref)
      return emitOpError("passes a weight as ")
             << info.name << " of " << getKernelAttr();
    if (info.rows != 0)
      if (WeightOp weight = lookupWeight(ref, ref.getWeightAttr(), symbols);
          weight && !isSuch(weight.getTensorType(), info))
        return emitOpError("passes ")
               << ref.getWeightAttr() << " of type " << weight.getTensorType()
               << " as " << info.name << " of " << getKernelAttr()
               << ", which takes " << info.rows << " x " << info.k << " of "
               << (info.block
                       ? StringRef(
                             kernels::traitsOf(info.block.getFormat()).mnemonic)
                       : StringRef("f32"));
    if (alloc && info.bytesPerRow != 0 &&
        !hasRoom(alloc.getSize(), kernel.launchRows(), info.bytesPerRow))
      return emitOpError("passes a buffer of ")
             << alloc.getSize() << " as " << info.name << " of "
             << getKernelAttr() << ", which needs " << info.bytesPerRow
             << " bytes a row";
  }
  if (getWanted() &&
      (!kernel.isRowLocal() || kernel.launchRows() == LaunchRows::Head))
    return emitOpError("is for wanted rows, but ")
           << getKernelAttr() << " does not run over them one by one";
  return success();
}

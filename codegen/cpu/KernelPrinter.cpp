#include "codegen/cpu/KernelPrinter.h"

#include "codegen/cpu/RegionPrinter.h"
#include "ir/lathe/CacheElement.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace lathe;
using namespace lathe::ir;

namespace {

StringRef formatId(BlockType block) {
  return kernels::traitsOf(block.getFormat()).name;
}

StringRef storeName(Store store) {
  return store == Store::F32 ? "Store::F32" : "Store::Q8";
}

StringRef sideName(Side side) {
  switch (side) {
  case Side::Element:
    return "Side::Element";
  case Side::Column:
    return "Side::Column";
  case Side::Row:
    return "Side::Row";
  }
  llvm_unreachable("all sides handled");
}

StringRef cacheTag(Type element) {
  switch (*cacheType(element)) {
  case KvType::F16:
    return "KvType::F16";
  case KvType::BF16:
    return "KvType::BF16";
  case KvType::F32:
    return "KvType::F32";
  case KvType::Int8:
    return "KvType::Int8";
  }
  llvm_unreachable("all KV types handled");
}

template <typename T>
void printList(raw_ostream &os, StringRef indent, StringRef type,
               StringRef name, ArrayRef<T> values, StringRef (*nameOf)(T)) {
  os << indent << "static constexpr u32 " << name << "Count = " << values.size()
     << ";\n";
  if (values.empty())
    return;
  os << indent << "static constexpr " << type << " " << name << "s[] = {";
  llvm::interleaveComma(values, os, [&](T value) { os << nameOf(value); });
  os << "};\n";
}

std::string typeList(StringRef name, StringRef element, size_t count) {
  std::string text = ("  using " + name + " = TypeList<").str();
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + element.str() + std::to_string(i);
  return text + ">;\n";
}

void printStruct(raw_ostream &os, EmbedKernelOp op) {
  os << "  static constexpr i64 vocab = " << op.getVocab() << ";\n"
     << "  static constexpr i64 k = " << op.getK() << ";\n"
     << "  static constexpr Format format = Format::"
     << formatId(cast<BlockType>(op.getWeight())) << ";\n";
  codegen::printMap(os, op.getMap(), 1, "  ");
}

void printStruct(raw_ostream &os, PickKernelOp op) {
  os << "  static constexpr i64 k = " << op.getK() << ";\n"
     << "  static constexpr i64 n = " << op.getN() << ";\n";
}

void printStruct(raw_ostream &os, RowwiseKernelOp op) {
  os << "  static constexpr i64 k = " << op.getK() << ";\n";
  for (auto [index, attr] : llvm::enumerate(op.getStages())) {
    auto stage = cast<StageAttr>(attr);
    os << "  struct Stage" << index << " {\n"
       << "    static constexpr bool rms = "
       << (stage.getRms() ? "true" : "false") << ";\n"
       << "    static constexpr f32 epsilon = "
       << codegen::floatLiteral(stage.getEpsilon().getValue().convertToFloat())
       << ";\n";
    printList<Side>(os, "    ", "Side", "side", stage.getSides(), sideName);
    printList<Store>(os, "    ", "Store", "store", stage.getStores(),
                     storeName);
    codegen::printMap(os, op.getMaps()[index], 1, "    ");
    os << "  };\n";
  }
  os << typeList("Stages", "Stage", op.getStages().size());
}

void printStruct(raw_ostream &os, GemmKernelOp op) {
  os << "  static constexpr i64 k = " << op.getK() << ";\n"
     << "  static constexpr Store input = " << storeName(op.getInput())
     << ";\n";
  for (auto [index, attr] : llvm::enumerate(op.getSegments())) {
    auto segment = cast<SegmentAttr>(attr);
    os << "  struct Seg" << index << " {\n"
       << "    static constexpr i64 n = " << segment.getN() << ";\n"
       << "    static constexpr Format format = Format::"
       << formatId(segment.getWeight()) << ";\n"
       << "    static constexpr bool paired = "
       << (segment.getPaired() ? "true" : "false") << ";\n"
       << "    static constexpr Store store = " << storeName(segment.getStore())
       << ";\n";
    printList<Side>(os, "    ", "Side", "side", segment.getSides(), sideName);
    codegen::printMap(os, op.getEpilogues()[index], segment.getPaired() ? 2 : 1,
                      "    ");
    os << "  };\n";
  }
  os << typeList("Segments", "Seg", op.getSegments().size());
}

void printStruct(raw_ostream &os, RopeAppendKernelOp op) {
  os << "  static constexpr u32 group = " << op.getGroup() << ";\n"
     << "  static constexpr i64 heads = " << op.getHeads() << ";\n"
     << "  static constexpr i64 kvHeads = " << op.getKvHeads() << ";\n"
     << "  static constexpr i64 headDim = " << op.getHeadDim() << ";\n"
     << "  static constexpr i64 ropePairs = " << op.getRopePairs() << ";\n"
     << "  static constexpr bool ropeHalves = "
     << (op.getStyle() == RopeStyle::Halves ? "true" : "false") << ";\n"
     << "  static constexpr bool qkNorm = "
     << (op.getQkNorm() ? "true" : "false") << ";\n"
     << "  static constexpr f32 epsilon = "
     << codegen::floatLiteral(op.getEpsilon().convertToFloat()) << ";\n"
     << "  static constexpr f32 qScale = "
     << codegen::floatLiteral(op.getQScale().convertToFloat()) << ";\n"
     << "  static constexpr KvType element = " << cacheTag(op.getElement())
     << ";\n"
     << "  static constexpr i64 chunk = " << op.getOwnChunk() << ";\n";
}

void printStruct(raw_ostream &os, AttentionKernelOp op) {
  os << "  static constexpr u32 group = " << op.getGroup() << ";\n"
     << "  static constexpr i64 heads = " << op.getHeads() << ";\n"
     << "  static constexpr i64 kvHeads = " << op.getKvHeads() << ";\n"
     << "  static constexpr i64 headDim = " << op.getHeadDim() << ";\n"
     << "  static constexpr i64 chunk = " << op.getChunk() << ";\n"
     << "  static constexpr i64 window = " << op.getWindow() << ";\n"
     << "  static constexpr f32 softcap = "
     << codegen::floatLiteral(op.getSoftcap().convertToFloat()) << ";\n"
     << "  static constexpr KvType element = " << cacheTag(op.getElement())
     << ";\n"
     << "  static constexpr Store store = " << storeName(op.getStore())
     << ";\n";
}

/// Out of line: a program has hundreds of launches, and Clang's time grows with
/// what is inlined into them.
constexpr StringLiteral launchHelpers = R"(
static __attribute__((noinline)) void wait(const StepArgs *args, u32 threads) {
  barrier(args, threads);
}
static __attribute__((noinline)) void
launch(const StepArgs *args, u32 index, KernelFunction kernel,
       const void *const *operands, u32 rows, u32 thread, u32 threads) {
  traceBegin(args, index, thread, threads);
  kernel(args, operands, rows, thread, threads);
  traceEnd(args, index, thread, threads);
}
template <u64 count>
static __attribute__((noinline)) void
launchWanted(const StepArgs *args, u32 index, KernelFunction kernel,
             const void *const (&operands)[count],
             const u64 (&rowBytes)[count], u32 thread, u32 threads) {
  traceBegin(args, index, thread, threads);
  for (u32 r = 0; r < args->wantedRangeCount; ++r) {
    const RowRange &range = args->wantedRows[r];
    const void *from[count];
    for (u64 i = 0; i < count; ++i)
      from[i] = static_cast<const u8 *>(operands[i]) + range.begin * rowBytes[i];
    kernel(args, from, range.count, thread, threads);
  }
  traceEnd(args, index, thread, threads);
}

)";

StringRef contractName(ContractOp op) {
  switch (op) {
#define LATHE_CASE(NAME)                                                       \
  case ContractOp::NAME:                                                       \
    return "ContractOp::" #NAME
    LATHE_CASE(Matmul);
    LATHE_CASE(MatmulTransposed);
    LATHE_CASE(Softmax);
    LATHE_CASE(Mask);
    LATHE_CASE(Map);
    LATHE_CASE(Combine);
    LATHE_CASE(Transpose);
    LATHE_CASE(RepeatHeads);
    LATHE_CASE(Norm);
    LATHE_CASE(Rope);
    LATHE_CASE(Attention);
    LATHE_CASE(Linear);
#undef LATHE_CASE
  }
  llvm_unreachable("all contract ops handled");
}

void printStruct(raw_ostream &os, ContractKernelOp op) {
  os << "  static constexpr ContractOp op = " << contractName(op.getOp())
     << ";\n  static constexpr i64 dims[] = {";
  llvm::interleaveComma(op.getDims(), os);
  std::string value = codegen::floatLiteral(op.getValue().convertToFloat());
  os << "};\n"
     << "  static constexpr f32 epsilon = " << value << ";\n"
     << "  static constexpr f32 scale = " << value << ";\n"
     << "  static constexpr i64 window = " << op.getWindow() << ";\n"
     << "  static constexpr f32 softcap = "
     << codegen::floatLiteral(op.getSoftcap().convertToFloat()) << ";\n"
     << "  static constexpr bool ropeHalves = "
     << (op.getStyle() == RopeStyle::Halves ? "true" : "false") << ";\n"
     << "  static constexpr bool bias = " << (op.getBias() ? "true" : "false")
     << ";\n";
  if (op.getWeight())
    os << "  static constexpr Format format = Format::"
       << formatId(cast<BlockType>(*op.getWeight())) << ";\n";
  if (!op.getMaps().empty())
    codegen::printMap(os, op.getMaps()[0],
                      op.getOp() == ContractOp::Combine ? 2 : 1, "  ");
}

/// The name of the skeleton's function template.
StringRef skeletonFunction(Operation *op) {
  return TypeSwitch<Operation *, StringRef>(op)
      .Case([](EmbedKernelOp) { return "embed"; })
      .Case([](RowwiseKernelOp) { return "rowwise"; })
      .Case([](GemmKernelOp) { return "gemm"; })
      .Case([](PickKernelOp) { return "pick"; })
      .Case([](RopeAppendKernelOp) { return "ropeAppend"; })
      .Case([](AttentionKernelOp) { return "attention"; })
      .Case([](ContractKernelOp) { return "contract"; });
}

} // namespace

std::string codegen::labelOf(Location loc) {
  SmallVector<StringRef> names;
  loc->walk([&](Location inner) {
    if (auto name = dyn_cast<NameLoc>(inner))
      if (!llvm::is_contained(names, name.getName().getValue()))
        names.push_back(name.getName().getValue());
    return WalkResult::advance();
  });
  return llvm::join(names, ", ");
}

std::string codegen::summarize(KernelOpInterface kernel) {
  std::string text = kernel.skeletonName().str();
  llvm::raw_string_ostream os(text);
  TypeSwitch<Operation *>(kernel.getOperation())
      .Case([&](EmbedKernelOp op) {
        os << " " << op.getVocab() << " x " << op.getK() << " "
           << formatId(cast<BlockType>(op.getWeight()));
      })
      .Case([&](RowwiseKernelOp op) {
        os << " " << op.getK();
        for (Attribute attr : op.getStages()) {
          auto stage = cast<StageAttr>(attr);
          os << (stage.getRms() ? " rms" : " map");
          for (Store store : stage.getStores())
            os << " -> " << stringifyStore(store);
        }
      })
      .Case([&](GemmKernelOp op) {
        os << " " << op.getK() << " ->";
        for (Attribute attr : op.getSegments()) {
          auto segment = cast<SegmentAttr>(attr);
          os << " " << segment.getN() << " " << formatId(segment.getWeight())
             << (segment.getPaired() ? " paired" : "")
             << (segment.getStore() == Store::Q8 ? " q8" : "");
        }
      })
      .Case([&](PickKernelOp op) {
        os << " " << op.getK() << " -> one of " << op.getN() << " "
           << formatId(cast<BlockType>(op.getWeight()));
      })
      .Case([&](RopeAppendKernelOp op) {
        os << " " << op.getHeads() << "+" << op.getKvHeads() << " x "
           << op.getHeadDim() << (op.getQkNorm() ? " qk-norm" : "");
      })
      .Case([&](AttentionKernelOp op) {
        os << " " << op.getHeads() << "/" << op.getKvHeads() << " x "
           << op.getHeadDim();
        if (op.getWindow() > 0)
          os << " window " << op.getWindow();
      })
      .Case([&](ContractKernelOp op) {
        os << " " << stringifyContractOp(op.getOp());
        for (int64_t dim : op.getDims())
          os << " " << (dim < 0 ? "T" : std::to_string(dim));
      });
  return text;
}

void codegen::printKernel(raw_ostream &os, KernelOpInterface kernel,
                          unsigned id) {
  os << "// " << summarize(kernel) << "\n// operands:";
  for (const OperandInfo &info : kernel.operandInfos())
    os << " " << info.name;
  os << "\nstruct K" << id << " {\n";
  TypeSwitch<Operation *>(kernel.getOperation())
      .Case<EmbedKernelOp, RowwiseKernelOp, GemmKernelOp, PickKernelOp,
            RopeAppendKernelOp, AttentionKernelOp, ContractKernelOp>(
          [&](auto op) { printStruct(os, op); });
  os << "};\n"
     << "extern \"C\" void lathe_kernel_" << id
     << "(const StepArgs *args, const void *const *operands,\n"
     << "    u32 rows, u32 thread, u32 threads) {\n"
     << "  " << skeletonFunction(kernel) << "<K" << id
     << ">(args, operands, rows, thread, threads);\n"
     << "}\n";
  // What each thread does for itself in a step of few rows.
  if (kernel.isReplicated()) {
    os << "static void own_kernel_" << id
       << "(const StepArgs *args, const void *const *operands, u32 rows,\n"
       << "    u32 thread, u32 threads) {\n  " << skeletonFunction(kernel);
    if (isa<RopeAppendKernelOp>(kernel.getOperation()))
      os << "Owned<K" << id << ">(args, operands, rows, thread, threads);\n";
    else
      os << "<K" << id << ">(args, operands, rows, 0, 1);\n";
    os << "}\n";
  }
  os << "\n";
}

std::string codegen::printModule(ModuleOp module,
                                 const WeightOffsets &weights) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "// Printed by Lathe; compile by hand with the flags of\n"
        "// kernels/cpu/README.md.\n"
        "#include \"kernels/cpu/Kernels.h\"\n\n"
        "using namespace lathe;\nusing namespace lathe::kernels;\n\n";
  llvm::DenseMap<StringAttr, unsigned> ids;
  for (auto kernel : module.getOps<KernelOpInterface>()) {
    auto id = static_cast<unsigned>(ids.size());
    ids[SymbolTable::getSymbolName(kernel)] = id;
    printKernel(os, kernel, id);
  }
  os << launchHelpers;
  for (auto program : module.getOps<ProgramOp>())
    printProgram(os, program, ("lathe_" + program.getSymName() + "_v1").str(),
                 ids, weights);
  return text;
}

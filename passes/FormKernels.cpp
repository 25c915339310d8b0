#include "kernels/abi/StepArgs.h"
#include "passes/ContractFormer.h"
#include "passes/ElementRegion.h"
#include "passes/KernelEmitter.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lathe::ir;

namespace lathe::passes {
#define GEN_PASS_DEF_FORMKERNELS
#include "passes/Passes.h.inc"

namespace {

int64_t columnsOf(Value value) {
  int64_t columns = 1;
  for (int64_t dim :
       cast<RankedTensorType>(value.getType()).getShape().drop_front())
    columns *= dim;
  return columns;
}

/// Elementwise ops that move into one element region, with what they read.
struct Cluster {
  /// The values that the skeleton computes: one, or two of a pair.
  SmallVector<Value, 2> roots;
  /// Column vectors added to roots (null: none), before everything else.
  SmallVector<FlatSymbolRefAttr, 2> biases;
  /// A column vector that multiplies the root (the norm's weight), or null.
  FlatSymbolRefAttr columnScale;
  SmallVector<Operation *> ops;
  /// Materialized values that the ops read, indexed by (row, column).
  SetVector<Value> elements;
  /// What the region yields.
  Value tip;
};

/// Turns one function into one program.
class FunctionFormer {
public:
  FunctionFormer(func::FuncOp func, ProgramEmitter &emitter,
                 const TargetInfo &target)
      : func(func), emitter(emitter), target(target),
        stepForm(isStepForm(func->getParentOfType<ModuleOp>())) {}

  LogicalResult run() {
    for (Operation &op : func.getBody().front()) {
      if (done.contains(&op))
        continue;
      if (failed(visit(&op)))
        return failure();
    }
    return success();
  }

private:
  LogicalResult visit(Operation *op) {
    if (isContracted(op, stepForm, symbols))
      return formContract(op, emitter);
    // Reshapes have no storage; positions come from the step; rotary embeddings
    // and head norms are part of the attention that reads them.
    if (isa<ReshapeOp, PositionsOp, KvAppendOp, RopeOp, func::ReturnOp>(op))
      return success();
    if (auto norm = dyn_cast<RmsNormOp>(op);
        norm && cast<RankedTensorType>(norm.getType()).getRank() == 3)
      return success();
    if (auto embed = dyn_cast<EmbedOp>(op))
      return formEmbed(embed);
    if (auto linear = dyn_cast<LinearOp>(op))
      return formGemm(op, linear.getInput(), {linear.getWeightAttr()},
                      {linear.getBiasAttr()}, {linear.getResult()});
    if (auto merged = dyn_cast<MergedLinearOp>(op))
      return formMerged(merged);
    if (auto attention = dyn_cast<PagedAttentionOp>(op))
      return formAttention(attention);
    if (isa<RmsNormOp, QuantizeRowsOp>(op) || isElementwise(op))
      return formRowwise(op);
    return op->emitOpError("has no kernel on this target");
  }

  //===--------------------------------------------------------------------===//
  // Clusters
  //===--------------------------------------------------------------------===//

  /// The only reader of the tip, if it is elementwise.
  Operation *nextElementwise(const Cluster &cluster) {
    SmallVector<Operation *> users = usersOf(cluster.tip);
    if (users.size() != 1 || !isElementwise(users.front()))
      return nullptr;
    return users.front();
  }

  /// Whether everything that `op` reads besides `tips` has a buffer already.
  bool readsOnly(Operation *op, ArrayRef<Value> tips) {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      Value storage = storageOf(operand);
      return llvm::is_contained(tips, storage) || emitter.lookup(storage);
    });
  }

  void absorb(Cluster &cluster, Operation *op, ArrayRef<Value> tips) {
    for (Value operand : op->getOperands())
      if (Value storage = storageOf(operand);
          !llvm::is_contained(tips, storage))
        cluster.elements.insert(storage);
    cluster.ops.push_back(op);
    cluster.tip = op->getResult(0);
    done.insert(op);
  }

  void grow(Cluster &cluster) {
    while (Operation *next = nextElementwise(cluster)) {
      Value tip = cluster.tip;
      if (!readsOnly(next, tip))
        return;
      absorb(cluster, next, tip);
    }
  }

  /// Builds the region of a cluster and lists its sides' kinds and buffers.
  void buildRegion(const Cluster &cluster, Region &region,
                   SmallVectorImpl<Side> &sides,
                   SmallVectorImpl<Value> &sideBuffers) {
    MLIRContext *context = func.getContext();
    Location loc = cluster.tip.getLoc();
    OpBuilder builder(context);
    Block &block = region.emplaceBlock();
    builder.setInsertionPointToEnd(&block);
    Type f32 = builder.getF32Type();
    DenseMap<Value, Value> scalars;
    for (Value root : cluster.roots)
      scalars[root] = block.addArgument(f32, loc);
    auto column = [&](FlatSymbolRefAttr symbol) -> Value {
      sides.push_back(Side::Column);
      sideBuffers.push_back(emitter.weight(symbol));
      return block.addArgument(f32, loc);
    };
    for (auto [root, bias] : llvm::zip(cluster.roots, cluster.biases))
      if (bias)
        scalars[root] =
            builder.create<arith::AddFOp>(loc, scalars[root], column(bias));
    if (cluster.columnScale)
      scalars[cluster.roots.front()] = builder.create<arith::MulFOp>(
          loc, scalars[cluster.roots.front()], column(cluster.columnScale));
    for (Value element : cluster.elements) {
      sides.push_back(Side::Element);
      sideBuffers.push_back(emitter.lookup(element));
      scalars[element] = block.addArgument(f32, loc);
    }
    for (Operation *op : cluster.ops)
      emitElement(builder, op, scalars);
    builder.create<YieldOp>(loc, scalars.lookup(cluster.tip));
  }

  /// The single quantize_rows that reads `value`, if nothing else does.
  QuantizeRowsOp onlyQuantized(Value value) {
    SmallVector<Operation *> users = usersOf(value);
    if (users.size() != 1)
      return {};
    return dyn_cast<QuantizeRowsOp>(users.front());
  }

  //===--------------------------------------------------------------------===//
  // Skeletons
  //===--------------------------------------------------------------------===//

  WeightOp weightOf(Operation *op, FlatSymbolRefAttr symbol) {
    return lookupWeight(op, symbol, symbols);
  }

  BlockType blockOf(Operation *op, FlatSymbolRefAttr symbol) {
    return cast<BlockType>(
        weightOf(op, symbol).getTensorType().getElementType());
  }

  LogicalResult formEmbed(EmbedOp op) {
    Cluster cluster{{op.getResult()}, {FlatSymbolRefAttr()}, {}, {}, {},
                    op.getResult()};
    grow(cluster);
    if (!cluster.elements.empty())
      return op.emitOpError("is combined with another activation elementwise, "
                            "which the embed kernel cannot do");
    WeightOp weight = weightOf(op, op.getWeightAttr());
    OpBuilder &builder = emitter.kernels().builder();
    auto kernel = builder.create<EmbedKernelOp>(
        op.getLoc(), emitter.kernels().placeholder(),
        builder.getI64IntegerAttr(weight.getTensorType().getDimSize(0)),
        builder.getI64IntegerAttr(weight.getTensorType().getDimSize(1)),
        TypeAttr::get(weight.getTensorType().getElementType()), StringAttr());
    SmallVector<Side> sides;
    SmallVector<Value> sideBuffers;
    buildRegion(cluster, kernel.getMap(), sides, sideBuffers);
    FlatSymbolRefAttr symbol = emitter.kernels().intern(kernel);
    emitter.launch(
        op.getLoc(), symbol,
        {emitter.weight(op.getWeightAttr()), emitter.allocateFor(cluster.tip)});
    return success();
  }

  LogicalResult formMerged(MergedLinearOp op) {
    SmallVector<FlatSymbolRefAttr> weights, biases;
    for (auto [index, weight] : llvm::enumerate(op.getWeights())) {
      weights.push_back(cast<FlatSymbolRefAttr>(weight));
      biases.push_back(
          op.getBiases() ? dyn_cast<FlatSymbolRefAttr>((*op.getBiases())[index])
                         : FlatSymbolRefAttr());
    }
    return formGemm(op, op.getInput(), weights, biases,
                    SmallVector<Value>(op.getResults()));
  }

  /// Two clusters whose tips meet in one elementwise op become one paired
  /// cluster, if their weights allow it.
  void pairUp(Operation *op, SmallVector<Cluster, 0> &clusters,
              SmallVectorImpl<SmallVector<FlatSymbolRefAttr, 2>> &weights) {
    for (size_t i = 0; i + 1 < clusters.size(); ++i)
      for (size_t j = i + 1; j < clusters.size(); ++j) {
        Cluster &first = clusters[i], &second = clusters[j];
        Operation *next = nextElementwise(first);
        if (!next || next != nextElementwise(second) ||
            weights[i].size() != 1 || weights[j].size() != 1)
          continue;
        RankedTensorType a = weightOf(op, weights[i][0]).getTensorType();
        RankedTensorType b = weightOf(op, weights[j][0]).getTensorType();
        SmallVector<Value, 2> tips = {first.tip, second.tip};
        if (a != b || a.getDimSize(0) % target.pairRows != 0 ||
            !readsOnly(next, tips))
          continue;
        first.roots.append(second.roots);
        first.biases.append(second.biases);
        first.ops.append(second.ops);
        first.elements.insert(second.elements.begin(), second.elements.end());
        absorb(first, next, tips);
        weights[i].append(weights[j]);
        clusters.erase(clusters.begin() + static_cast<ptrdiff_t>(j));
        weights.erase(weights.begin() + static_cast<ptrdiff_t>(j));
        grow(clusters[i]);
        break;
      }
  }

  /// A weight whose row groups alternate between two others'.
  FlatSymbolRefAttr interleave(Operation *op,
                               ArrayRef<FlatSymbolRefAttr> sources) {
    WeightOp first = weightOf(op, sources[0]),
             second = weightOf(op, sources[1]);
    std::string name =
        (sources[0].getValue() + "+" + sources[1].getValue()).str();
    auto module = op->getParentOfType<ModuleOp>();
    if (!module.lookupSymbol(name)) {
      OpBuilder builder(second);
      builder.setInsertionPointAfter(second);
      RankedTensorType type = first.getTensorType();
      auto rows = builder.getNamedAttr(
          "rows", builder.getI64IntegerAttr(target.pairRows));
      builder.create<WeightOp>(
          builder.getFusedLoc({first.getLoc(), second.getLoc()}),
          builder.getStringAttr(name),
          TypeAttr::get(RankedTensorType::get(
              {2 * type.getDimSize(0), type.getDimSize(1)},
              type.getElementType())),
          RecipeAttr::get(builder.getContext(), "interleave",
                          builder.getDictionaryAttr(rows),
                          {first.getRecipe(), second.getRecipe()}),
          StringAttr());
    }
    return FlatSymbolRefAttr::get(op->getContext(), name);
  }

  LogicalResult formGemm(Operation *op, Value input,
                         ArrayRef<FlatSymbolRefAttr> weightSymbols,
                         ArrayRef<FlatSymbolRefAttr> biases,
                         ArrayRef<Value> results) {
    MLIRContext *context = op->getContext();
    SmallVector<Cluster, 0> clusters;
    SmallVector<SmallVector<FlatSymbolRefAttr, 2>> weights;
    for (auto [weight, bias, result] :
         llvm::zip(weightSymbols, biases, results)) {
      clusters.push_back({{result}, {bias}, {}, {}, {}, result});
      weights.push_back({weight});
    }
    for (Cluster &cluster : clusters)
      grow(cluster);
    pairUp(op, clusters, weights);

    bool q8 =
        isa<Q8Type>(cast<RankedTensorType>(input.getType()).getElementType());
    OpBuilder &builder = emitter.kernels().builder();
    SmallVector<Attribute> segments;
    SmallVector<Value> operands = {emitter.lookup(input)}, sideBuffers, outs;
    SmallVector<std::unique_ptr<Region>> regions;
    for (auto [cluster, symbols] : llvm::zip(clusters, weights)) {
      bool paired = symbols.size() == 2;
      FlatSymbolRefAttr weight = paired ? interleave(op, symbols) : symbols[0];
      operands.push_back(emitter.weight(weight));
      regions.push_back(std::make_unique<Region>());
      SmallVector<Side> sides;
      buildRegion(cluster, *regions.back(), sides, sideBuffers);
      int64_t n = columnsOf(cluster.tip);
      QuantizeRowsOp quantize = onlyQuantized(cluster.tip);
      Store store =
          quantize && n % target.columnUnit == 0 ? Store::Q8 : Store::F32;
      segments.push_back(SegmentAttr::get(context, n, blockOf(op, symbols[0]),
                                          paired, store, sides));
      if (store == Store::Q8) {
        outs.push_back(emitter.allocate(cluster.tip.getLoc(),
                                        rowStoreBytes(Store::Q8, n)));
        emitter.bind(quantize.getResult(), outs.back());
        done.insert(quantize);
      } else {
        outs.push_back(emitter.allocateFor(cluster.tip));
      }
    }
    auto kernel = builder.create<GemmKernelOp>(
        op->getLoc(), emitter.kernels().placeholder(),
        builder.getI64IntegerAttr(columnsOf(input)),
        LaunchRowsAttr::get(context, emitter.rows()),
        StoreAttr::get(context, q8 ? Store::Q8 : Store::F32),
        builder.getArrayAttr(segments), StringAttr(),
        static_cast<unsigned>(regions.size()));
    for (auto [region, map] : llvm::zip(regions, kernel.getEpilogues()))
      map.takeBody(*region);
    operands.append(sideBuffers);
    operands.append(outs);
    emitter.launch(op->getLoc(), emitter.kernels().intern(kernel), operands);
    return success();
  }

  /// One stage of a rowwise kernel: what it computes and who reads it.
  struct RowStage {
    Cluster cluster;
    RmsNormOp norm;
    /// The results that its q8 store serves; none: no such store.
    SmallVector<Value> quantized;
    /// Whether its value is read from memory as f32.
    bool storesF32 = false;
    /// The norm that goes on with its value, or null.
    RmsNormOp next;
  };

  /// The stage that starts with `op`, a row norm, an elementwise op on `input`
  /// or a quantize_rows of it.
  FailureOr<RowStage> makeStage(Operation *op, Value input) {
    RowStage stage;
    Cluster &cluster = stage.cluster;
    cluster.biases = {FlatSymbolRefAttr()};
    cluster.roots = {input};
    cluster.tip = input;
    done.insert(op);
    if (auto quantize = dyn_cast<QuantizeRowsOp>(op)) {
      stage.quantized = {quantize.getResult()};
      return stage;
    }
    if ((stage.norm = dyn_cast<RmsNormOp>(op))) {
      cluster.roots = {stage.norm.getResult()};
      cluster.columnScale = stage.norm.getWeightAttr();
      cluster.tip = stage.norm.getResult();
    } else {
      if (!readsOnly(op, input))
        return op->emitOpError("reads a value that no kernel has stored");
      absorb(cluster, op, input);
    }
    grow(cluster);
    for (Operation *user : usersOf(cluster.tip)) {
      auto norm = dyn_cast<RmsNormOp>(user);
      if (auto quantize = dyn_cast<QuantizeRowsOp>(user)) {
        stage.quantized.push_back(quantize.getResult());
        done.insert(user);
      } else if (norm && !stage.next &&
                 cast<RankedTensorType>(norm.getType()).getRank() == 2) {
        stage.next = norm;
      } else {
        stage.storesF32 = true;
      }
    }
    return stage;
  }

  LogicalResult formRowwise(Operation *first) {
    MLIRContext *context = func.getContext();
    OpBuilder &builder = emitter.kernels().builder();
    Value input = storageOf(first->getOperand(0));
    SmallVector<Value> operands = {emitter.lookup(input)}, sideBuffers, outs;
    if (!operands.front())
      return first->emitOpError("reads a value that no kernel has stored");
    SmallVector<RowStage, 0> rowStages;
    for (Operation *op = first; op; op = rowStages.back().next) {
      FailureOr<RowStage> stage = makeStage(op, input);
      if (failed(stage))
        return failure();
      rowStages.push_back(std::move(*stage));
    }
    // Each thread may repeat a launch for itself only if nobody else reads what
    // it stores as f32.
    bool replicated =
        target.replicateRowwise &&
        llvm::none_of(rowStages, [](RowStage &s) { return s.storesF32; });

    SmallVector<Attribute> stages;
    SmallVector<std::unique_ptr<Region>> regions;
    for (RowStage &stage : rowStages) {
      SmallVector<Side> sides;
      SmallVector<Store> stores;
      regions.push_back(std::make_unique<Region>());
      buildRegion(stage.cluster, *regions.back(), sides, sideBuffers);
      Value tip = stage.cluster.tip;
      if (stage.storesF32) {
        stores.push_back(Store::F32);
        outs.push_back(emitter.allocateFor(tip));
      }
      if (!stage.quantized.empty()) {
        stores.push_back(Store::Q8);
        outs.push_back(emitter.allocate(
            tip.getLoc(), rowStoreBytes(Store::Q8, columnsOf(tip)),
            replicated));
        for (Value quantized : stage.quantized)
          emitter.bind(quantized, outs.back());
      }
      stages.push_back(StageAttr::get(context, static_cast<bool>(stage.norm),
                                      stage.norm ? stage.norm.getEpsilonAttr()
                                                 : builder.getF32FloatAttr(0),
                                      sides, stores));
    }
    auto kernel = builder.create<RowwiseKernelOp>(
        first->getLoc(), emitter.kernels().placeholder(),
        builder.getI64IntegerAttr(columnsOf(input)),
        LaunchRowsAttr::get(context, emitter.rows()),
        builder.getBoolAttr(replicated), builder.getArrayAttr(stages),
        StringAttr(), static_cast<unsigned>(regions.size()));
    for (auto [region, map] : llvm::zip(regions, kernel.getMaps()))
      map.takeBody(*region);
    operands.append(sideBuffers);
    operands.append(outs);
    emitter.launch(first->getLoc(), emitter.kernels().intern(kernel), operands);
    return success();
  }

  /// Heads as the attention wants them, traced back to a stored value.
  struct HeadSource {
    Value flat;
    RopeOp rope;
    RmsNormOp norm;
  };

  HeadSource traceHeads(Value heads) {
    HeadSource source;
    if ((source.rope = heads.getDefiningOp<RopeOp>()))
      heads = source.rope.getInput();
    if ((source.norm = heads.getDefiningOp<RmsNormOp>()))
      heads = source.norm.getInput();
    source.flat = emitter.lookup(heads);
    return source;
  }

  LogicalResult formAttention(PagedAttentionOp op) {
    MLIRContext *context = op.getContext();
    auto append = op.getBatch().getDefiningOp<KvAppendOp>();
    if (!append || append.getGroup() != op.getGroup() ||
        append.getLayer() != op.getLayer())
      return op.emitOpError("does not read the batch that its own layer's "
                            "lathe.kv_append made");
    auto group =
        symbols.lookupNearestSymbolFrom<KvGroupOp>(op, op.getGroupAttr());
    HeadSource q = traceHeads(op.getQuery()), k = traceHeads(append.getKey()),
               v = traceHeads(append.getValue());
    if (!q.flat || !k.flat || !v.flat || v.rope || v.norm ||
        static_cast<bool>(q.rope) != static_cast<bool>(k.rope) ||
        static_cast<bool>(q.norm) != static_cast<bool>(k.norm) ||
        (q.rope && (q.rope.getTable() != k.rope.getTable() ||
                    q.rope.getStyle() != k.rope.getStyle())) ||
        (q.norm && q.norm.getEpsilon() != k.norm.getEpsilon()))
      return op.emitOpError(
          "needs queries and keys that are linear results, normed alike and "
          "rotated by the same table, and plain values");
    int64_t index = group.indexOfLayer(append.getLayer());
    auto query = cast<RankedTensorType>(op.getQuery().getType());
    int64_t heads = query.getDimSize(1), headDim = query.getDimSize(2);
    OpBuilder &builder = emitter.kernels().builder();
    auto integer = [&](int64_t value) {
      return builder.getI64IntegerAttr(value);
    };
    int64_t pairs = 0;
    if (q.rope)
      pairs = weightOf(op, q.rope.getTableAttr()).getTensorType().getDimSize(1);
    auto rope = builder.create<RopeAppendKernelOp>(
        append.getLoc(), emitter.kernels().placeholder(),
        integer(group.getId()), integer(heads), integer(group.getKvHeads()),
        integer(headDim), integer(pairs),
        RopeStyleAttr::get(context,
                           q.rope ? q.rope.getStyle() : RopeStyle::Adjacent),
        builder.getBoolAttr(static_cast<bool>(q.norm)),
        q.norm ? q.norm.getEpsilonAttr() : builder.getF32FloatAttr(0),
        op.getScaleAttr(), group.getElementAttr(),
        integer(group.getPageBytes()), StringAttr());
    SmallVector<Value> operands = {q.flat, k.flat, v.flat};
    if (q.rope)
      operands.push_back(emitter.weight(q.rope.getTableAttr()));
    if (q.norm) {
      operands.push_back(emitter.weight(q.norm.getWeightAttr()));
      operands.push_back(emitter.weight(k.norm.getWeightAttr()));
    }
    Value kPool =
        emitter.kvPool(op.getLoc(), group.getId(), group.getKOffsets()[index]);
    Value vPool =
        emitter.kvPool(op.getLoc(), group.getId(), group.getVOffsets()[index]);
    Value rotated = emitter.allocate(op.getLoc(), heads * headDim * 4);
    operands.append({kPool, vPool, rotated});
    emitter.launch(append.getLoc(), emitter.kernels().intern(rope), operands);

    QuantizeRowsOp quantize = onlyQuantized(op.getResult());
    bool wholeBlocks = headDim % activationBlockElems == 0;
    Store store = quantize && wholeBlocks ? Store::Q8 : Store::F32;
    auto attention = builder.create<AttentionKernelOp>(
        op.getLoc(), emitter.kernels().placeholder(), integer(group.getId()),
        integer(heads), integer(group.getKvHeads()), integer(headDim),
        integer(target.attentionChunk), op.getWindowAttr(), op.getSoftcapAttr(),
        group.getElementAttr(), integer(group.getPageBytes()),
        StoreAttr::get(context, store), StringAttr());
    Value partials =
        emitter.allocatePartials(op.getLoc(), heads * (headDim + 2) * 4);
    Value out;
    if (store == Store::Q8) {
      out = emitter.allocate(op.getLoc(),
                             rowStoreBytes(Store::Q8, heads * headDim));
      emitter.bind(quantize.getResult(), out);
      done.insert(quantize);
    } else {
      out = emitter.allocateFor(op.getResult());
    }
    emitter.launch(op.getLoc(), emitter.kernels().intern(attention),
                   {rotated, kPool, vPool, partials, out});
    return success();
  }

  func::FuncOp func;
  ProgramEmitter &emitter;
  const TargetInfo &target;
  bool stepForm;
  SymbolTableCollection symbols;
  /// Ops that an emitted kernel contains already.
  DenseSet<Operation *> done;
};

struct FormKernelsPass : impl::FormKernelsBase<FormKernelsPass> {
  FormKernelsPass() = default;
  explicit FormKernelsPass(const TargetInfo &target) : target(target) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    KernelTable kernels(module);
    for (StringRef name : {"body", "head"}) {
      auto func = module.lookupSymbol<func::FuncOp>(name);
      if (!func) {
        module.emitError("form-kernels needs a function @") << name;
        return signalPassFailure();
      }
      bool head = name == "head";
      // The program takes the function's name.
      SymbolTable::setSymbolName(func, ("graph." + name).str());
      ProgramEmitter emitter(kernels, module, name,
                             head ? LaunchRows::Head : LaunchRows::Tokens,
                             func.getLoc());
      if (head)
        emitter.bind(func.getArgument(0),
                     emitter.stepBuffer(StepBuffer::HeadInput));
      if (failed(FunctionFormer(func, emitter, target).run()))
        return signalPassFailure();
      func.erase();
    }
  }

private:
  TargetInfo target;
};

} // namespace

std::unique_ptr<Pass> createFormKernels(const TargetInfo &target) {
  return std::make_unique<FormKernelsPass>(target);
}

} // namespace lathe::passes

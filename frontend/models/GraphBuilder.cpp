#include "frontend/models/GraphBuilder.h"

#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"

using namespace lathe;
using namespace lathe::frontend;
using mlir::FlatSymbolRefAttr;
using mlir::RankedTensorType;
using mlir::Value;
using runtime::ErrorKind;

namespace {

int64_t columnsOf(Value value) {
  return mlir::cast<RankedTensorType>(value.getType()).getShape().back();
}

/// "blk.0.attn_q.weight" is @blk.0.attn_q in the IR.
std::string symbolOf(std::string_view tensor) {
  constexpr std::string_view suffix = ".weight";
  if (tensor.ends_with(suffix))
    tensor.remove_suffix(suffix.size());
  return std::string(tensor);
}

} // namespace

GraphBuilder::GraphBuilder(mlir::MLIRContext &mlirContext, const GgufFile &file,
                           int64_t positions, bool readTensors)
    : gguf(file), context(positions), readTensors(readTensors),
      module(mlir::ModuleOp::create(mlir::UnknownLoc::get(&mlirContext))),
      builder(&mlirContext), weightBuilder(&mlirContext),
      loc(mlir::UnknownLoc::get(&mlirContext)) {
  // Weights come first, then the functions.
  builder.setInsertionPointToEnd(module->getBody());
  auto tokensType =
      RankedTensorType::get({mlir::ShapedType::kDynamic}, builder.getI32Type());
  function = builder.create<mlir::func::FuncOp>(
      loc, "body", builder.getFunctionType({tokensType}, {}));
  weightBuilder.setInsertionPoint(function);
  builder.setInsertionPointToStart(function.addEntryBlock());
  tokenIds = function.getArgument(0);
  positionIds = builder.create<ir::PositionsOp>(loc, tokensType, tokenIds);
}

void GraphBuilder::fail(runtime::Error newError) {
  if (!error)
    error = std::move(newError);
}

uint32_t GraphBuilder::u32(std::string_view key) {
  return keep(gguf.getU32(key));
}
uint32_t GraphBuilder::u32(std::string_view key, uint32_t fallback) {
  return keep(gguf.getU32(key, fallback));
}
float GraphBuilder::f32(std::string_view key) { return keep(gguf.getF32(key)); }
float GraphBuilder::f32(std::string_view key, float fallback) {
  return keep(gguf.getF32(key, fallback));
}
std::string GraphBuilder::string(std::string_view key,
                                 std::string_view fallback) {
  return std::string(keep(gguf.getString(key, fallback)));
}

void GraphBuilder::at(const std::string &place) {
  loc = mlir::NameLoc::get(builder.getStringAttr(place));
}

RankedTensorType GraphBuilder::rowsOf(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t> full = {mlir::ShapedType::kDynamic};
  full.append(shape.begin(), shape.end());
  return RankedTensorType::get(full, builder.getF32Type());
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

mlir::Attribute GraphBuilder::sourceOf(const GgufTensor &tensor) {
  used.insert(&tensor);
  return ir::SourceAttr::get(builder.getContext(), tensor.shard, tensor.offset,
                             tensor.data.size());
}

FlatSymbolRefAttr GraphBuilder::declare(const std::string &symbol,
                                        RankedTensorType type,
                                        mlir::Attribute recipe,
                                        mlir::Location where) {
  if (auto known = mlir::dyn_cast_or_null<ir::WeightOp>(
          mlir::SymbolTable::lookupSymbolIn(*module, symbol))) {
    if (known.getTensorType() != type)
      fail({ErrorKind::Unsupported, gguf.path() + ": the model uses tensor '" +
                                        symbol + "' with two shapes"});
  } else {
    weightBuilder.create<ir::WeightOp>(
        where, weightBuilder.getStringAttr(symbol), mlir::TypeAttr::get(type),
        recipe, mlir::StringAttr());
  }
  return FlatSymbolRefAttr::get(builder.getContext(), symbol);
}

FlatSymbolRefAttr GraphBuilder::matrix(const std::string &name, int64_t n,
                                       int64_t k) {
  auto found = gguf.getTensor(name);
  auto symbol = FlatSymbolRefAttr::get(builder.getContext(), symbolOf(name));
  if (!found) {
    fail(found.error());
    return symbol;
  }
  const GgufTensor &tensor = **found;
  if (tensor.k() != static_cast<uint64_t>(k) ||
      tensor.rows() != static_cast<uint64_t>(n)) {
    fail({ErrorKind::InvalidInput,
          fmt::format("{}: tensor '{}' is {} x {}, but the model's "
                      "hyper-parameters need {} x {}",
                      gguf.path(), name, tensor.rows(), tensor.k(), n, k)});
    return symbol;
  }
  if (readTensors)
    if (auto ok = gguf.checkBlocks(tensor); !ok)
      fail(ok.error());
  auto element =
      ir::BlockType::get(builder.getContext(), tensor.format, ir::Layout::Rows);
  return declare(symbolOf(name), RankedTensorType::get({n, k}, element),
                 sourceOf(tensor),
                 mlir::NameLoc::get(builder.getStringAttr(name)));
}

FlatSymbolRefAttr GraphBuilder::vector(const std::string &name, int64_t n) {
  auto found = gguf.getTensor(name);
  auto symbol = FlatSymbolRefAttr::get(builder.getContext(), symbolOf(name));
  if (!found) {
    fail(found.error());
    return symbol;
  }
  const GgufTensor &tensor = **found;
  if (tensor.k() * tensor.rows() != static_cast<uint64_t>(n)) {
    fail({ErrorKind::InvalidInput,
          fmt::format("{}: tensor '{}' has {} values, but the model's "
                      "hyper-parameters need {}",
                      gguf.path(), name, tensor.k() * tensor.rows(), n)});
    return symbol;
  }
  const kernels::FormatTraits &traits = kernels::traitsOf(tensor.format);
  if (!kernels::isFloatFormat(tensor.format)) {
    fail({ErrorKind::Unsupported,
          fmt::format("{}: tensor '{}' is a vector in {}; vectors are F32, F16 "
                      "or BF16",
                      gguf.path(), name, traits.name)});
    return symbol;
  }
  mlir::Attribute recipe = sourceOf(tensor);
  if (tensor.format != kernels::Format::F32)
    recipe = ir::RecipeAttr::get(
        builder.getContext(), "convert",
        builder.getDictionaryAttr(builder.getNamedAttr(
            "format", builder.getStringAttr(llvm::StringRef(traits.mnemonic)))),
        {recipe});
  return declare(symbolOf(name),
                 RankedTensorType::get({n}, builder.getF32Type()), recipe,
                 mlir::NameLoc::get(builder.getStringAttr(name)));
}

FlatSymbolRefAttr GraphBuilder::ropeTable(const RopeSpec &rope) {
  auto number = [&](llvm::StringRef key, double value) {
    return builder.getNamedAttr(key, builder.getF64FloatAttr(value));
  };
  llvm::SmallVector<mlir::NamedAttribute> params = {number("base", rope.base)};
  params.push_back(
      builder.getNamedAttr("scaling", builder.getStringAttr(rope.scaling)));
  if (rope.scaling != "none")
    params.push_back(number("factor", rope.factor));
  if (rope.attentionFactor != 1)
    params.push_back(number("attention_factor", rope.attentionFactor));
  if (rope.scaling == "yarn") {
    params.push_back(number("original_context", rope.originalContext));
    params.push_back(number("beta_fast", rope.betaFast));
    params.push_back(number("beta_slow", rope.betaSlow));
    params.push_back(number("extrapolation", rope.extrapolation));
  }
  llvm::SmallVector<mlir::Attribute> inputs;
  if (!rope.divisors.empty()) {
    auto tensor = gguf.getTensor(rope.divisors);
    if (!tensor) {
      fail(tensor.error());
    } else if ((*tensor)->format != kernels::Format::F32 ||
               (*tensor)->k() * (*tensor)->rows() !=
                   static_cast<uint64_t>(rope.pairs)) {
      fail({ErrorKind::InvalidInput,
            fmt::format("{}: tensor '{}' must be {} values of F32", gguf.path(),
                        rope.divisors, rope.pairs)});
    } else {
      inputs.push_back(sourceOf(**tensor));
    }
  }
  auto recipe = ir::RecipeAttr::get(builder.getContext(), "rope_table",
                                    builder.getDictionaryAttr(params), inputs);
  auto type =
      RankedTensorType::get({context, rope.pairs, 2}, builder.getF32Type());
  // Layers with other angles get tables of their own.
  std::string symbol = "rope";
  for (int suffix = 1;; ++suffix) {
    auto known = mlir::dyn_cast_or_null<ir::WeightOp>(
        mlir::SymbolTable::lookupSymbolIn(*module, symbol));
    if (!known)
      return declare(symbol, type, recipe,
                     mlir::NameLoc::get(builder.getStringAttr(symbol)));
    if (known.getRecipe() == recipe && known.getTensorType() == type)
      return FlatSymbolRefAttr::get(builder.getContext(), symbol);
    symbol = "rope." + std::to_string(suffix);
  }
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Value GraphBuilder::embed(const std::string &tensor, int64_t hidden) {
  auto found = gguf.getTensor(tensor);
  int64_t vocab = found ? static_cast<int64_t>((*found)->rows()) : 1;
  return builder.create<ir::EmbedOp>(loc, rowsOf(hidden), tokenIds,
                                     matrix(tensor, vocab, hidden));
}

Value GraphBuilder::linear(Value x, const std::string &name, int64_t n) {
  FlatSymbolRefAttr bias;
  if (hasTensor(name + ".bias"))
    bias = vector(name + ".bias", n);
  auto where = mlir::NameLoc::get(builder.getStringAttr(name));
  return builder.create<ir::LinearOp>(
      where, rowsOf(n), x, matrix(name + ".weight", n, columnsOf(x)), bias);
}

Value GraphBuilder::rmsNorm(Value x, const std::string &tensor, float epsilon) {
  auto where = mlir::NameLoc::get(builder.getStringAttr(symbolOf(tensor)));
  return builder.create<ir::RmsNormOp>(where, x.getType(), x,
                                       vector(tensor, columnsOf(x)),
                                       builder.getF32FloatAttr(epsilon));
}

Value GraphBuilder::add(Value a, Value b) {
  return builder.create<ir::AddOp>(loc, a.getType(), a, b);
}
Value GraphBuilder::mul(Value a, Value b) {
  return builder.create<ir::MulOp>(loc, a.getType(), a, b);
}
Value GraphBuilder::silu(Value x) {
  return builder.create<ir::SiluOp>(loc, x.getType(), x);
}
Value GraphBuilder::gelu(Value x) {
  return builder.create<ir::GeluOp>(loc, x.getType(), x);
}
Value GraphBuilder::scale(Value x, float factor) {
  return builder.create<ir::ScaleOp>(loc, x.getType(), x,
                                     builder.getF32FloatAttr(factor));
}
Value GraphBuilder::softcap(Value x, float cap) {
  return builder.create<ir::SoftcapOp>(loc, x.getType(), x,
                                       builder.getF32FloatAttr(cap));
}

Value GraphBuilder::transpose(Value heads) {
  auto type = mlir::cast<RankedTensorType>(heads.getType());
  llvm::ArrayRef<int64_t> shape = type.getShape();
  return builder.create<ir::TransposeOp>(
      loc,
      RankedTensorType::get({shape[1], shape[0], shape[2]},
                            type.getElementType()),
      heads);
}

Value GraphBuilder::heads(Value flat, int64_t count, int64_t headDim) {
  return builder.create<ir::ReshapeOp>(loc, rowsOf({count, headDim}), flat);
}

Value GraphBuilder::prepare(Value heads, const std::string &norm,
                            const AttentionSpec &spec) {
  if (!norm.empty())
    heads = rmsNorm(heads, norm, spec.epsilon);
  if (spec.rope.pairs > 0)
    heads = builder.create<ir::RopeOp>(
        loc, heads.getType(), heads, positionIds, ropeTable(spec.rope),
        ir::RopeStyleAttr::get(builder.getContext(), spec.rope.style));
  return heads;
}

Value GraphBuilder::attention(Value q, Value k, Value v,
                              const AttentionSpec &spec) {
  int64_t times = spec.heads / spec.kvHeads;
  Value query =
      prepare(heads(q, spec.heads, spec.headDim), spec.queryNorm, spec);
  Value key = prepare(heads(k, spec.kvHeads, spec.headDim), spec.keyNorm, spec);
  Value value = heads(v, spec.kvHeads, spec.headDim);
  if (times > 1) {
    auto repeated = rowsOf({spec.heads, spec.headDim});
    auto count = builder.getI64IntegerAttr(times);
    key = builder.create<ir::RepeatHeadsOp>(loc, repeated, key, count);
    value = builder.create<ir::RepeatHeadsOp>(loc, repeated, value, count);
  }
  query = transpose(query);
  key = transpose(key);
  value = transpose(value);
  int64_t any = mlir::ShapedType::kDynamic;
  auto scoresType =
      RankedTensorType::get({spec.heads, any, any}, builder.getF32Type());
  Value scores = builder.create<ir::MatmulOp>(loc, scoresType, query, key,
                                              builder.getUnitAttr());
  scores = scale(scores, spec.scale);
  if (spec.softcap > 0)
    scores = softcap(scores, spec.softcap);
  scores = builder.create<ir::MaskOp>(loc, scoresType, scores, positionIds,
                                      builder.getI64IntegerAttr(spec.window));
  Value weights = builder.create<ir::SoftmaxOp>(loc, scoresType, scores);
  Value mixed = builder.create<ir::MatmulOp>(loc, value.getType(), weights,
                                             value, mlir::UnitAttr());
  return builder.create<ir::ReshapeOp>(loc, rowsOf(spec.heads * spec.headDim),
                                       transpose(mixed));
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Value GraphBuilder::startHead(Value hidden) {
  builder.create<mlir::func::ReturnOp>(loc, hidden);
  function.setFunctionType(
      builder.getFunctionType({tokenIds.getType()}, {hidden.getType()}));
  builder.setInsertionPointAfter(function);
  function = builder.create<mlir::func::FuncOp>(
      loc, "head", builder.getFunctionType({hidden.getType()}, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  return function.getArgument(0);
}

void GraphBuilder::endHead(Value logits) {
  builder.create<mlir::func::ReturnOp>(loc, logits);
  function.setFunctionType(
      builder.getFunctionType(function.getArgumentTypes(), {logits.getType()}));
}

void GraphBuilder::checkUse() {
  for (const GgufTensor &tensor : gguf.tensors())
    if (!used.contains(&tensor))
      return fail(
          {ErrorKind::Unsupported,
           fmt::format("{}: tensor '{}' has no place in this architecture as "
                       "Lathe knows it; {} of {} tensors are used",
                       gguf.path(), tensor.name, used.size(),
                       gguf.tensors().size())});
}

runtime::Result<mlir::OwningOpRef<mlir::ModuleOp>>
GraphBuilder::finish(ir::ModelAttr model) {
  if (!error)
    checkUse();
  if (error)
    return tl::unexpected<runtime::Error>(*error);
  (*module)->setAttr(ir::LatheDialect::modelAttrName, model);
  (*module)->setAttr(ir::LatheDialect::formAttrName,
                     builder.getStringAttr("sequence"));
  return std::move(module);
}

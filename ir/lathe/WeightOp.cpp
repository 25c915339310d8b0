#include "ir/lathe/Lathe.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace lathe;
using namespace lathe::ir;

namespace {

LogicalResult verifyRecipe(WeightOp op, Attribute recipe, unsigned depth) {
  if (depth > 16)
    return op.emitOpError("has a recipe nested deeper than 16");
  if (auto source = dyn_cast<SourceAttr>(recipe)) {
    auto module = op->getParentOfType<ModuleOp>();
    auto files =
        module ? module->getAttrOfType<ArrayAttr>(LatheDialect::filesAttrName)
               : ArrayAttr();
    if (files && source.getFile() >= files.size())
      return op.emitOpError("names source file ")
             << source.getFile() << ", but 'lathe.files' has " << files.size();
    if (files) {
      auto file = cast<FileAttr>(files[source.getFile()]);
      if (source.getOffset() > file.getBytes() ||
          source.getBytes() > file.getBytes() - source.getOffset())
        return op.emitOpError("reads bytes ")
               << source.getOffset() << " + " << source.getBytes()
               << ", outside of '" << file.getName() << "' (" << file.getBytes()
               << " bytes)";
    }
    return success();
  }
  auto transform = dyn_cast<RecipeAttr>(recipe);
  if (!transform)
    return op.emitOpError("needs a #lathe.source or #lathe.recipe, not ")
           << recipe;
  struct Known {
    StringRef name;
    size_t inputsMin, inputsMax;
  };
  static constexpr Known known[] = {
      {"pack", 1, 1},    {"interleave", 2, 2}, {"rope_table", 0, 1},
      {"convert", 1, 1}, {"coarse", 1, 1},     {"coarse_errors", 1, 1}};
  const Known *found = llvm::find_if(known, [&](const Known &k) {
    return k.name == transform.getTransform();
  });
  if (found == std::end(known))
    return op.emitOpError("has an unknown transform '")
           << transform.getTransform() << "'";
  size_t inputs = transform.getInputs().size();
  if (inputs < found->inputsMin || inputs > found->inputsMax)
    return op.emitOpError("gives transform '")
           << found->name << "' " << inputs << " inputs; it takes "
           << found->inputsMin << " to " << found->inputsMax;
  for (Attribute input : transform.getInputs())
    if (failed(verifyRecipe(op, input, depth + 1)))
      return failure();
  return success();
}

/// Whether a recipe, known to be well formed, can make the weight's type. What
/// this bounds by source bytes needs no other limit.
LogicalResult verifyRecipeGives(WeightOp op, RankedTensorType type) {
  auto recipe = dyn_cast<RecipeAttr>(op.getRecipe());
  if (!recipe)
    return success();
  StringRef transform = recipe.getTransform();
  bool isMatrix = isa<BlockType>(type.getElementType());
  if (isMatrix != (transform == "pack" || transform == "interleave" ||
                   transform == "coarse"))
    return op.emitOpError("cannot have transform '")
           << transform << "' make " << type;
  if (transform == "interleave") {
    auto rows = recipe.getParams().getAs<IntegerAttr>("rows");
    if (!rows || rows.getValue().getSignificantBits() > 32 ||
        rows.getInt() <= 0 || type.getDimSize(0) % (2 * rows.getInt()) != 0)
      return op.emitOpError(
                 "needs 'rows' for 'interleave', of which two groups "
                 "divide its ")
             << type.getDimSize(0) << " rows";
  } else if (transform == "convert") {
    auto name = recipe.getParams().getAs<StringAttr>("format");
    auto format = name ? kernels::formatFromName(name.getValue())
                       : std::optional<kernels::Format>();
    auto source = dyn_cast<SourceAttr>(recipe.getInputs()[0]);
    if (!format || !kernels::isFloatFormat(*format) || !source)
      return op.emitOpError("needs 'format', a float format, and a source for "
                            "'convert'");
    uint64_t bytes =
        uint64_t(type.getNumElements()) * kernels::traitsOf(*format).blockBytes;
    if (source.getBytes() != bytes)
      return op.emitOpError("needs ")
             << bytes << " bytes for " << type << " from " << name.getValue()
             << ", but its source has " << source.getBytes();
  } else if (transform == "coarse") {
    // Its rows are checked against the source when it is made.
    auto source = dyn_cast<SourceAttr>(recipe.getInputs()[0]);
    auto block = cast<BlockType>(type.getElementType());
    if (!source || block.getFormat() != kernels::Format::Q5_0)
      return op.emitOpError("needs a source for 'coarse', which makes q5_0");
  } else if (transform == "coarse_errors") {
    auto k = recipe.getParams().getAs<IntegerAttr>("k");
    auto source = dyn_cast<SourceAttr>(recipe.getInputs()[0]);
    if (!source || !k || k.getValue().getSignificantBits() > 32 ||
        k.getInt() <= 0 || type.getRank() != 1)
      return op.emitOpError("needs 'k' and a source for a vector of "
                            "'coarse_errors'");
    auto row = kernels::rowBytes(kernels::Format::Q8_0,
                                 static_cast<uint64_t>(k.getInt()));
    // No source has more bytes than 64 bits count: no overflow goes unseen.
    if (!row || *row > source.getBytes() || source.getBytes() % *row != 0 ||
        source.getBytes() / *row != uint64_t(type.getDimSize(0)))
      return op.emitOpError("needs ")
             << type.getDimSize(0) << " rows of " << k.getInt()
             << " q8_0 elements, but its source has " << source.getBytes()
             << " bytes";
  } else if (transform == "rope_table") {
    // 2^28 values are 1 GiB: a million positions of 128 pairs.
    if (type.getRank() != 3 || type.getDimSize(2) != 2 ||
        type.getNumElements() > (int64_t(1) << 28))
      return op.emitOpError("needs a rope_table to be [positions, pairs, 2] of "
                            "at most 2^28 values, not ")
             << type;
  }
  return success();
}

} // namespace

LogicalResult WeightOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape() || type.getRank() == 0)
    return emitOpError("needs a static ranked tensor type, not ") << getType();
  for (int64_t dim : type.getShape())
    if (dim <= 0)
      return emitOpError("has an empty dimension in ") << type;
  if (auto block = dyn_cast<BlockType>(type.getElementType())) {
    const kernels::FormatTraits &traits = kernels::traitsOf(block.getFormat());
    if (type.getRank() != 2)
      return emitOpError("of !lathe.block must be a matrix, not ") << type;
    if (type.getDimSize(1) % traits.blockElems != 0)
      return emitOpError("has rows of ")
             << type.getDimSize(1) << ", not a multiple of "
             << StringRef(traits.mnemonic) << "'s block of "
             << traits.blockElems;
    auto source = dyn_cast<SourceAttr>(getRecipe());
    auto rowBytes = kernels::rowBytes(block.getFormat(), type.getDimSize(1));
    uint64_t bytes = 0;
    if (!rowBytes ||
        __builtin_mul_overflow(*rowBytes, uint64_t(type.getDimSize(0)), &bytes))
      return emitOpError("is larger than 2^64 bytes");
    if (source && source.getBytes() != bytes)
      return emitOpError("needs ")
             << bytes << " bytes for " << type << ", but its source has "
             << source.getBytes();
  } else if (!type.getElementType().isF32()) {
    return emitOpError("needs elements of f32 or !lathe.block, not ")
           << type.getElementType();
  } else {
    uint64_t bytes = sizeof(float);
    for (int64_t dim : type.getShape())
      if (__builtin_mul_overflow(bytes, uint64_t(dim), &bytes))
        return emitOpError("is larger than 2^64 bytes");
    auto source = dyn_cast<SourceAttr>(getRecipe());
    if (source && source.getBytes() != bytes)
      return emitOpError("needs ")
             << bytes << " bytes for " << type << ", but its source has "
             << source.getBytes();
  }
  if (failed(verifyRecipe(*this, getRecipe(), 0)))
    return failure();
  return verifyRecipeGives(*this, type);
}

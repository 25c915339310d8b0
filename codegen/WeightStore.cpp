#include "codegen/WeightStore.h"

#include "kernels/formats/Coarse.h"
#include "kernels/formats/Dequantize.h"
#include "kernels/formats/Layout.h"
#include "runtime/support/Checked.h"

#include <cstring>

using namespace lathe;
using namespace lathe::codegen;
using runtime::ErrorKind;
using runtime::fail;
using runtime::Result;

Result<std::span<const uint8_t>>
WeightStore::source(ir::SourceAttr source) const {
  if (source.getFile() >= files.size())
    return fail(ErrorKind::InvalidInput,
                "a weight names source file {}, but there are {}",
                source.getFile(), files.size());
  std::span<const uint8_t> bytes = files[source.getFile()];
  if (!runtime::rangeFits(source.getOffset(), source.getBytes(), bytes.size()))
    return fail(ErrorKind::InvalidInput,
                "a weight reads bytes {} + {} of a source file of {} bytes",
                source.getOffset(), source.getBytes(), bytes.size());
  return bytes.subspan(source.getOffset(), source.getBytes());
}

Result<WeightStore::Rows> WeightStore::rows(mlir::Attribute recipe,
                                            uint64_t rowCount,
                                            uint64_t rowBytes) const {
  if (auto leaf = mlir::dyn_cast<ir::SourceAttr>(recipe)) {
    auto bytes = source(leaf);
    if (!bytes)
      return runtime::failFrom(bytes);
    if (bytes->size() != rowCount * rowBytes)
      return fail(ErrorKind::InvalidInput,
                  "a weight of {} rows of {} bytes has a source of {} bytes",
                  rowCount, rowBytes, bytes->size());
    Rows result(rowCount);
    for (uint64_t row = 0; row < rowCount; ++row)
      result[row] = bytes->data() + row * rowBytes;
    return result;
  }
  auto transform = mlir::cast<ir::RecipeAttr>(recipe);
  if (transform.getTransform() != "interleave" || rowCount % 2 != 0)
    return fail(ErrorKind::Unsupported, "recipe '{}' does not give a matrix",
                transform.getTransform().str());
  auto groupAttr = transform.getParams().getAs<mlir::IntegerAttr>("rows");
  uint64_t group = groupAttr ? static_cast<uint64_t>(groupAttr.getInt()) : 0;
  if (group == 0 || rowCount / 2 % group != 0)
    return fail(ErrorKind::InvalidInput,
                "recipe 'interleave' cannot alternate groups of {} of {} rows",
                group, rowCount / 2);
  auto first = rows(transform.getInputs()[0], rowCount / 2, rowBytes);
  auto second = rows(transform.getInputs()[1], rowCount / 2, rowBytes);
  if (!first)
    return runtime::failFrom(first);
  if (!second)
    return runtime::failFrom(second);
  Rows result;
  result.reserve(rowCount);
  for (uint64_t row = 0; row < rowCount / 2; row += group)
    for (const Rows *part : {&*first, &*second})
      result.insert(result.end(), part->begin() + static_cast<ptrdiff_t>(row),
                    part->begin() + static_cast<ptrdiff_t>(row + group));
  return result;
}

Result<WeightStore::Rows> WeightStore::rows(ir::WeightOp weight) const {
  mlir::RankedTensorType type = weight.getTensorType();
  auto block = mlir::dyn_cast<ir::BlockType>(type.getElementType());
  auto rowBytes =
      block ? kernels::rowBytes(block.getFormat(),
                                static_cast<uint64_t>(type.getDimSize(1)))
            : std::nullopt;
  if (!rowBytes)
    return fail(ErrorKind::Unsupported, "weight '{}' is not a matrix of blocks",
                weight.getSymName().str());
  mlir::Attribute recipe = weight.getRecipe();
  auto pack = mlir::dyn_cast<ir::RecipeAttr>(recipe);
  if (pack && pack.getTransform() == "pack")
    recipe = pack.getInputs()[0];
  return rows(recipe, static_cast<uint64_t>(type.getDimSize(0)), *rowBytes);
}

Result<void> WeightStore::stream(ir::WeightOp weight,
                                 const ByteSink &sink) const {
  mlir::RankedTensorType type = weight.getTensorType();
  auto block = mlir::dyn_cast<ir::BlockType>(type.getElementType());
  if (!block) {
    auto floats = values(weight);
    if (!floats)
      return runtime::failFrom(floats);
    return sink({reinterpret_cast<const uint8_t *>(floats->data()),
                 floats->size() * sizeof(float)});
  }
  auto rowCount = static_cast<uint64_t>(type.getDimSize(0));
  auto k = static_cast<uint64_t>(type.getDimSize(1));
  auto rowBytes = kernels::rowBytes(block.getFormat(), k);
  auto groupBytes = kernels::packedGroupBytes(block.getFormat(), k);
  auto pack = mlir::dyn_cast<ir::RecipeAttr>(weight.getRecipe());
  if (!rowBytes || !groupBytes || block.getLayout() != ir::Layout::R16 ||
      !pack || pack.getTransform() != "pack")
    return fail(ErrorKind::Unsupported,
                "weight '{}' is not packed for a target",
                weight.getSymName().str());
  mlir::Attribute recipe = pack.getInputs()[0];
  auto coarse = mlir::dyn_cast<ir::RecipeAttr>(recipe);
  if (coarse && coarse.getTransform() == "coarse" &&
      block.getFormat() == kernels::Format::Q5_0)
    recipe = coarse.getInputs()[0];
  else
    coarse = nullptr;
  uint64_t sourceBytes =
      coarse ? *kernels::rowBytes(kernels::Format::Q8_0, k) : *rowBytes;
  auto sources = rows(recipe, rowCount, sourceBytes);
  if (!sources)
    return runtime::failFrom(sources, weight.getSymName().str());
  std::vector<uint8_t> buffer(*groupBytes);
  std::vector<uint8_t> rounded(coarse ? kernels::r16Rows * *rowBytes : 0);
  for (uint64_t row = 0; row < rowCount; row += kernels::r16Rows) {
    std::array<const uint8_t *, kernels::r16Rows> group = {};
    for (uint64_t i = 0; i < group.size() && row + i < rowCount; ++i)
      group[i] = (*sources)[row + i];
    for (uint64_t i = 0; coarse && i < group.size() && group[i]; ++i) {
      uint8_t *to = rounded.data() + i * *rowBytes;
      kernels::coarsenRow(group[i], k, to);
      group[i] = to;
    }
    kernels::packGroup(block.getFormat(), group, k, buffer.data());
    if (auto ok = sink(buffer); !ok)
      return ok;
  }
  return {};
}

Result<std::vector<float>> WeightStore::values(ir::WeightOp weight) const {
  mlir::RankedTensorType type = weight.getTensorType();
  std::vector<float> result(static_cast<size_t>(type.getNumElements()));
  auto read = [&](ir::SourceAttr leaf, kernels::Format format,
                  std::vector<float> &into) -> Result<void> {
    auto bytes = source(leaf);
    if (!bytes)
      return runtime::failFrom(bytes);
    if (bytes->size() != into.size() * kernels::traitsOf(format).blockBytes)
      return fail(ErrorKind::InvalidInput,
                  "weight '{}' has {} values but {} source bytes",
                  weight.getSymName().str(), into.size(), bytes->size());
    kernels::dequantizeRow(format, bytes->data(), into.data(),
                           static_cast<int64_t>(into.size()));
    return {};
  };
  Result<void> ok;
  if (auto leaf = mlir::dyn_cast<ir::SourceAttr>(weight.getRecipe())) {
    ok = read(leaf, kernels::Format::F32, result);
  } else {
    auto transform = mlir::cast<ir::RecipeAttr>(weight.getRecipe());
    if (transform.getTransform() == "convert") {
      auto name = transform.getParams().getAs<mlir::StringAttr>("format");
      auto format = name ? kernels::formatFromName(name.getValue())
                         : std::optional<kernels::Format>();
      auto leaf = mlir::dyn_cast<ir::SourceAttr>(transform.getInputs()[0]);
      if (!format || !kernels::isFloatFormat(*format) || !leaf)
        return fail(ErrorKind::InvalidInput,
                    "weight '{}' has a 'convert' recipe without a float format",
                    weight.getSymName().str());
      ok = read(leaf, *format, result);
    } else if (transform.getTransform() == "coarse_errors") {
      auto k = transform.getParams().getAs<mlir::IntegerAttr>("k");
      auto leaf = mlir::dyn_cast<ir::SourceAttr>(transform.getInputs()[0]);
      auto row = k && leaf
                     ? kernels::rowBytes(kernels::Format::Q8_0,
                                         static_cast<uint64_t>(k.getInt()))
                     : std::nullopt;
      if (!row)
        return fail(ErrorKind::InvalidInput,
                    "weight '{}' has a 'coarse_errors' recipe without k or "
                    "source",
                    weight.getSymName().str());
      auto bytes = source(leaf);
      if (!bytes)
        return runtime::failFrom(bytes);
      if (bytes->size() / *row != result.size())
        return fail(ErrorKind::InvalidInput,
                    "weight '{}' has {} values but {} source bytes",
                    weight.getSymName().str(), result.size(), bytes->size());
      for (size_t i = 0; i < result.size(); ++i)
        result[i] = kernels::coarseError(bytes->data() + i * *row,
                                         static_cast<uint64_t>(k.getInt()));
    } else if (transform.getTransform() == "rope_table" &&
               type.getRank() == 3 && type.getDimSize(2) == 2) {
      std::vector<float> divisors;
      if (!transform.getInputs().empty()) {
        auto leaf = mlir::dyn_cast<ir::SourceAttr>(transform.getInputs()[0]);
        divisors.resize(static_cast<size_t>(type.getDimSize(1)));
        if (!leaf)
          return fail(ErrorKind::InvalidInput,
                      "weight '{}' has a 'rope_table' recipe whose input is no "
                      "source",
                      weight.getSymName().str());
        ok = read(leaf, kernels::Format::F32, divisors);
      }
      if (ok)
        return makeRopeTable(transform.getParams(), type.getDimSize(0),
                             type.getDimSize(1), divisors);
    } else {
      return fail(ErrorKind::Unsupported,
                  "weight '{}': recipe '{}' does not give a vector",
                  weight.getSymName().str(), transform.getTransform().str());
    }
  }
  if (!ok)
    return runtime::failFrom(ok);
  return result;
}

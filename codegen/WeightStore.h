/// \file
/// The bytes of weights: recipes executed over the source files, tensor by
/// tensor, when an engine is written.
#ifndef LATHE_CODEGEN_WEIGHTSTORE_H
#define LATHE_CODEGEN_WEIGHTSTORE_H

#include "codegen/engine/EngineWriter.h"
#include "ir/lathe/Lathe.h"
#include "runtime/support/Result.h"

#include <cstdint>
#include <span>
#include <vector>

namespace lathe::codegen {

/// Executes recipes. Borrows the mapped source files, in the order of the
/// module's `lathe.files`; they must outlive it. Thread-compatible.
class WeightStore {
public:
  explicit WeightStore(std::vector<std::span<const uint8_t>> files)
      : files(std::move(files)) {}

  /// Streams the bytes of a weight in the layout that its type names: a matrix
  /// in groups of 16 rows, so that no weight is ever held whole. Errors:
  /// InvalidInput (a recipe reads outside its file), Unsupported (a recipe that
  /// cannot give the weight's type).
  runtime::Result<void> stream(ir::WeightOp weight, const ByteSink &sink) const;

  /// A vector or table as f32 values.
  runtime::Result<std::vector<float>> values(ir::WeightOp weight) const;

  /// Pointers to the rows of a matrix, each in the source's own order, whatever
  /// layout its type names. They point into the source files.
  runtime::Result<std::vector<const uint8_t *>> rows(ir::WeightOp weight) const;

private:
  using Rows = std::vector<const uint8_t *>;
  runtime::Result<std::span<const uint8_t>> source(ir::SourceAttr source) const;
  /// Pointers to the rows of a matrix in the source's own layout.
  runtime::Result<Rows> rows(mlir::Attribute recipe, uint64_t rowCount,
                             uint64_t rowBytes) const;

  std::vector<std::span<const uint8_t>> files;
};

/// The rotary table [positions][pairs][2] of a `rope_table` recipe: cos and sin
/// of each angle, computed in f64, rounded once. `divisors` has one value per
/// pair, or none (llama-3). Scaling: none, linear (positions / factor), yarn
/// (Peng et al., arXiv 2309.00071, section 3.2: NTK by parts, and the attention
/// factor 0.1·ln(factor) + 1 as a scale of both).
runtime::Result<std::vector<float>>
makeRopeTable(mlir::DictionaryAttr params, int64_t positions, int64_t pairs,
              std::span<const float> divisors);

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_WEIGHTSTORE_H

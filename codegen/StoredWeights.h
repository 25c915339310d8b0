/// \file
/// The weights of a model's files, for the interpreter.
#ifndef LATHE_CODEGEN_STOREDWEIGHTS_H
#define LATHE_CODEGEN_STOREDWEIGHTS_H

#include "codegen/WeightStore.h"
#include "ir/interpreter/WeightProvider.h"

#include "llvm/ADT/DenseMap.h"

namespace lathe::codegen {

/// Executes recipes by a WeightStore, whose source files must outlive it. Keeps
/// vectors and tables, which several ops read; matrices stay where they are.
class StoredWeights : public ir::WeightProvider {
public:
  explicit StoredWeights(WeightStore store) : store(std::move(store)) {}

  runtime::Result<std::vector<const uint8_t *>>
  rows(ir::WeightOp weight) override {
    return store.rows(weight);
  }
  runtime::Result<std::vector<float>> values(ir::WeightOp weight) override;

private:
  WeightStore store;
  /// By type and recipe, which say all about the values, whatever module the
  /// weight is in.
  llvm::DenseMap<std::pair<mlir::Type, mlir::Attribute>, std::vector<float>>
      known;
};

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_STOREDWEIGHTS_H

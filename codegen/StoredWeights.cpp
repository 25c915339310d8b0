#include "codegen/StoredWeights.h"

using namespace lathe;
using namespace lathe::codegen;

runtime::Result<std::vector<float>> StoredWeights::values(ir::WeightOp weight) {
  std::pair<mlir::Type, mlir::Attribute> key = {weight.getType(),
                                                weight.getRecipe()};
  if (auto found = known.find(key); found != known.end())
    return found->second;
  auto made = store.values(weight);
  if (made)
    known[key] = *made;
  return made;
}

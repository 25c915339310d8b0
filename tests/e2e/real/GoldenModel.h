/// \file
/// One of the real models with what tests/golden/golden says of it.
#ifndef LATHE_TESTS_E2E_REAL_GOLDENMODEL_H
#define LATHE_TESTS_E2E_REAL_GOLDENMODEL_H

#include "kernels/abi/Types.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lathe::tests {

struct GoldenModel {
  nlohmann::json golden; ///< tests/golden/golden/NAME.json
  std::string path;      ///< The model file in LATHE_MODELS.
  /// What to say where that is not there, else empty.
  std::string missing;

  explicit GoldenModel(const std::string &name);

  /// The ids of the golden prompts and their continuations, one after the
  /// other, again and again up to `length`.
  std::vector<i32> text(u32 length) const;
};

} // namespace lathe::tests

#endif // LATHE_TESTS_E2E_REAL_GOLDENMODEL_H

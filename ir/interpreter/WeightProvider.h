/// \file
/// Where the interpreter gets the bytes of weights from.
#ifndef LATHE_IR_INTERPRETER_WEIGHTPROVIDER_H
#define LATHE_IR_INTERPRETER_WEIGHTPROVIDER_H

#include "ir/lathe/Lathe.h"
#include "runtime/support/Result.h"

#include <cstdint>
#include <vector>

namespace lathe::ir {

/// Executes a weight's recipe. Called by one thread at a time.
class WeightProvider {
public:
  virtual ~WeightProvider();

  /// One pointer per row of a matrix, each to the row's blocks in ggml's
  /// order, whatever layout the weight's type names. They stay valid as long
  /// as the provider.
  virtual runtime::Result<std::vector<const uint8_t *>>
  rows(WeightOp weight) = 0;

  /// The values of a vector or table.
  virtual runtime::Result<std::vector<float>> values(WeightOp weight) = 0;
};

} // namespace lathe::ir

#endif // LATHE_IR_INTERPRETER_WEIGHTPROVIDER_H

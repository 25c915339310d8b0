/// \file
/// The reference interpreter of the graph dialect, the oracle of every pass:
/// each op by its definition in LatheOps.td, one after the other, values kept
/// in f32, every op computed in f64 and rounded once. Two things are exact by
/// contract instead (docs/numerics.md): `lathe.quantize_rows` gives the very
/// blocks that kernels give, and a KV cache rounds to its element type.
///
/// Slow: a linear decodes its weight each time.
#ifndef LATHE_IR_INTERPRETER_INTERPRETER_H
#define LATHE_IR_INTERPRETER_INTERPRETER_H

#include "ir/interpreter/KvStore.h"
#include "ir/interpreter/Tensor.h"
#include "ir/interpreter/WeightProvider.h"
#include "ir/lathe/Lathe.h"

#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace lathe::ir {

/// Sees each op that gives tensors, in program order, with its results. The
/// tensors are valid during the call.
using OpHook =
    std::function<void(mlir::Operation *op, std::span<const Tensor *const>)>;

/// Runs functions of a verified module of the dialects `lathe` and `func`.
/// Borrows the module and the weights. Errors are diagnostics at the op: a
/// shape that does not fit what the types promise, a token outside of the
/// vocabulary, a position outside of a rotary table, a key that nobody wrote,
/// an op of another dialect. One thread at a time.
class Interpreter {
public:
  Interpreter(mlir::ModuleOp module, WeightProvider &weights)
      : module(module), weights(weights) {}

  void setHook(OpHook newHook) { hook = std::move(newHook); }

  /// Runs a function without a !lathe.batch: @body in sequence form (tokens
  /// [T] -> hidden [T, H]) or @head (hidden [R, H] -> logits [R, vocab]).
  mlir::FailureOr<std::vector<Tensor>> run(std::string_view function,
                                           std::vector<Tensor> arguments);

  /// Runs a function in step form: `arguments` are all but the !lathe.batch,
  /// whose rows are `rows`. Afterwards the store holds every append.
  mlir::FailureOr<std::vector<Tensor>> runStep(std::string_view function,
                                               std::vector<Tensor> arguments,
                                               std::span<const StepRow> rows,
                                               KvStore &store);

private:
  mlir::FailureOr<std::vector<Tensor>> execute(std::string_view name,
                                               std::vector<Tensor> arguments,
                                               const std::vector<StepRow> *rows,
                                               KvStore *store);

  mlir::ModuleOp module;
  WeightProvider &weights;
  OpHook hook;
};

} // namespace lathe::ir

#endif // LATHE_IR_INTERPRETER_INTERPRETER_H

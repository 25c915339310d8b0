/// \file
/// Kernels for what only a graph in sequence form contains: the part of
/// form-kernels that no default pipeline reaches.
#ifndef LATHE_PASSES_CONTRACTFORMER_H
#define LATHE_PASSES_CONTRACTFORMER_H

#include "passes/KernelEmitter.h"

namespace lathe::passes {

/// Whether `op` becomes a kernel.contract: attention and its decomposed parts,
/// rotary embeddings and head norms in sequence form, elementwise ops on
/// scores, and linears on quantized weights whose input is f32.
bool isContracted(mlir::Operation *op, bool stepForm,
                  mlir::SymbolTableCollection &symbols);

/// Emits the kernels and launches of one such op.
mlir::LogicalResult formContract(mlir::Operation *op, ProgramEmitter &emitter);

} // namespace lathe::passes

#endif // LATHE_PASSES_CONTRACTFORMER_H

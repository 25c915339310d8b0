/// \file
/// Building a kernel.program: kernels made once each, buffers, launches.
#ifndef LATHE_PASSES_KERNELEMITTER_H
#define LATHE_PASSES_KERNELEMITTER_H

#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

namespace lathe::passes {

/// The kernels of a module. Equal kernels (same skeleton, constants, regions)
/// get one symbol.
class KernelTable {
public:
  explicit KernelTable(mlir::ModuleOp module);

  /// Takes a freshly built kernel op and returns the symbol to launch: its own,
  /// or that of an equal kernel, in which case the new one is erased.
  mlir::FlatSymbolRefAttr intern(mlir::Operation *kernel);

  /// Where to build kernels: before the module's programs.
  mlir::OpBuilder &builder() { return kernelBuilder; }

  /// A name that intern replaces.
  mlir::StringAttr placeholder() { return kernelBuilder.getStringAttr("k"); }

private:
  mlir::OpBuilder kernelBuilder;
  llvm::StringMap<mlir::StringAttr> known;
};

/// True if the function returns the value.
bool isReturned(mlir::Value value);

/// The program of one function: buffers of graph values and launches in order.
class ProgramEmitter {
public:
  ProgramEmitter(KernelTable &table, mlir::ModuleOp module,
                 mlir::StringRef name, ir::LaunchRows rows, mlir::Location loc);

  KernelTable &kernels() { return table; }
  ir::LaunchRows rows() const { return launchRows; }

  /// The buffer of a graph value (reshapes looked through), or null.
  mlir::Value lookup(mlir::Value value) const;
  void bind(mlir::Value value, mlir::Value buffer);

  /// A new buffer of `bytesPerRow` for each row of this program; with room for
  /// every thread's own copy of short steps if `replicated`.
  mlir::Value allocate(mlir::Location loc, int64_t bytesPerRow,
                       bool replicated = false);
  /// The buffer of a new f32 value, bound to it: the step's own if the function
  /// returns the value, else one in the arena, as allocate().
  mlir::Value allocateFor(mlir::Value value, bool replicated = false);
  /// A new buffer of `bytes` for each attention partial.
  mlir::Value allocatePartials(mlir::Location loc, int64_t bytes);
  mlir::Value weight(mlir::FlatSymbolRefAttr symbol);
  mlir::Value kvPool(mlir::Location loc, int64_t group, int64_t offset);
  mlir::Value stepBuffer(ir::StepBuffer kind);

  void launch(mlir::Location loc, mlir::FlatSymbolRefAttr kernel,
              mlir::ValueRange buffers);

private:
  mlir::Type bufferType() { return builder.getType<ir::BufferType>(); }

  KernelTable &table;
  ir::ProgramOp program;
  mlir::OpBuilder builder;
  ir::LaunchRows launchRows;
  llvm::DenseMap<mlir::Value, mlir::Value> buffers;
  llvm::DenseMap<mlir::Attribute, mlir::Value> weights;
};

/// Adds a program "pick" beside "head" if that ends in a gemm of Q8_0 whose
/// results are the logits as they are; the other launches are the same.
void formPick(mlir::ModuleOp module, KernelTable &kernels);

} // namespace lathe::passes

#endif // LATHE_PASSES_KERNELEMITTER_H

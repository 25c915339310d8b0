/// \file
/// Kernel IR as C++ text: what a person would write to instantiate the
/// skeletons of kernels/cpu, readable and compilable by hand.
#ifndef LATHE_CODEGEN_CPU_KERNELPRINTER_H
#define LATHE_CODEGEN_CPU_KERNELPRINTER_H

#include "ir/kernel/Kernel.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace lathe::codegen {

/// Where each weight lies in the weights section, in bytes.
using WeightOffsets = llvm::DenseMap<mlir::StringAttr, uint64_t>;

/// Prints one kernel op as a structure of constants and an exported function
/// lathe_kernel_<id>.
void printKernel(llvm::raw_ostream &os, ir::KernelOpInterface kernel,
                 unsigned id);

/// Prints a program as the function `symbol`, (args, thread, threads) -> void:
/// the launches in order, with barriers between dependent ones. `ids` numbers
/// the kernels.
void printProgram(llvm::raw_ostream &os, ir::ProgramOp program,
                  llvm::StringRef symbol,
                  const llvm::DenseMap<mlir::StringAttr, unsigned> &ids,
                  const WeightOffsets &weights);

/// One line for people: "gemm 576 -> q4_1 576, 192, 192".
std::string summarize(ir::KernelOpInterface kernel);

/// The model's name for what an op does: the names in its location.
std::string labelOf(mlir::Location loc);

/// A whole translation unit for a planned module (after plan-memory).
std::string printModule(mlir::ModuleOp module, const WeightOffsets &weights);

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_CPU_KERNELPRINTER_H

/// \file
/// Element regions as C++ functors: the one printer for all targets.
#ifndef LATHE_CODEGEN_CPU_REGIONPRINTER_H
#define LATHE_CODEGEN_CPU_REGIONPRINTER_H

#include "mlir/IR/Region.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace lathe::codegen {

/// A C++ literal with exactly this value (hexadecimal, suffix f).
std::string floatLiteral(float value);

/// Prints `template <typename V> static inline V map(V x0, …, V s0, …)`: the
/// first `values` arguments are the skeleton's, the rest sides.
void printMap(llvm::raw_ostream &os, mlir::Region &region, unsigned values,
              llvm::StringRef indent);

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_CPU_REGIONPRINTER_H

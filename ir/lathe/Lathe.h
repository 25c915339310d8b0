/// \file
/// The graph dialect: types, attributes and ops (LatheDialect.td, LatheOps.td).
#ifndef LATHE_IR_LATHE_LATHE_H
#define LATHE_IR_LATHE_LATHE_H

#include "kernels/formats/Format.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/lathe/LatheDialect.h.inc"
#include "ir/lathe/LatheEnums.h.inc"

namespace lathe::ir {

/// Parses a format's mnemonic (`q4_1`); the error lists the known ones.
mlir::FailureOr<kernels::Format> parseFormat(mlir::AsmParser &parser);

/// Parses `true` or `false`.
mlir::FailureOr<bool> parseBool(mlir::AsmParser &parser);

} // namespace lathe::ir

#define GET_TYPEDEF_CLASSES
#include "ir/lathe/LatheTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/lathe/LatheAttrs.h.inc"
#define GET_OP_CLASSES
#include "ir/lathe/LatheOps.h.inc"

namespace lathe::ir {

/// The weight that `symbol` names in the module around `from`, or null after an
/// error at `from`.
WeightOp lookupWeight(mlir::Operation *from, mlir::FlatSymbolRefAttr symbol,
                      mlir::SymbolTableCollection &symbols);

/// The module's form; `"sequence"` if nothing is said.
bool isStepForm(mlir::ModuleOp module);

} // namespace lathe::ir

#endif // LATHE_IR_LATHE_LATHE_H

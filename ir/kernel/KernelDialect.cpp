#include "ir/kernel/Kernel.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lathe::ir;

#include "ir/kernel/KernelDialect.cpp.inc"
#include "ir/kernel/KernelEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/kernel/KernelTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/kernel/KernelAttrs.cpp.inc"

void KernelDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/kernel/KernelTypes.cpp.inc"
      >();
}

void KernelDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/kernel/KernelAttrs.cpp.inc"
      >();
}

void KernelDialect::initialize() {
  registerTypes();
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "ir/kernel/KernelOps.cpp.inc"
      >();
}

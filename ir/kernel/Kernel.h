/// \file
/// The schedule dialect: kernels, programs and launches (KernelDialect.td,
/// KernelOps.td).
#ifndef LATHE_IR_KERNEL_KERNEL_H
#define LATHE_IR_KERNEL_KERNEL_H

#include "ir/lathe/Lathe.h"

#include "mlir/Interfaces/ControlFlowInterfaces.h"

#include "ir/kernel/KernelDialect.h.inc"
#include "ir/kernel/KernelEnums.h.inc"

namespace lathe::ir {

/// Whether a launch reads or writes an operand.
enum class Role { Read, Write, ReadWrite };

/// One operand of a kernel.
struct OperandInfo {
  std::string name;
  Role role;
  /// Bytes per row if the operand is an activation, else 0.
  int64_t bytesPerRow = 0;
  /// What a weight must be: `k` values of each of `rows` rows, in `block`'s
  /// format or, if that is null, f32. rows = 0: no weight, or one whose rows
  /// the kernel does not say.
  BlockType block = {};
  int64_t rows = 0;
  int64_t k = 0;
};

} // namespace lathe::ir

#define GET_TYPEDEF_CLASSES
#include "ir/kernel/KernelTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/kernel/KernelAttrs.h.inc"

#include "ir/kernel/KernelInterfaces.h.inc"

#define GET_OP_CLASSES
#include "ir/kernel/KernelOps.h.inc"

namespace lathe::ir {

/// Bytes of one row of `n` values stored as `store`.
int64_t rowStoreBytes(Store store, int64_t n);

} // namespace lathe::ir

#endif // LATHE_IR_KERNEL_KERNEL_H

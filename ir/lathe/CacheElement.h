/// \file
/// The elements of a KV cache as IR types.
#ifndef LATHE_IR_LATHE_CACHEELEMENT_H
#define LATHE_IR_LATHE_CACHEELEMENT_H

#include "kernels/abi/KvTile.h"

#include "mlir/IR/Types.h"

#include <optional>

namespace lathe::ir {

/// The dtype of a KV cache of such elements (f16, bf16, f32, i8); nothing for
/// any other type.
std::optional<KvType> cacheType(mlir::Type element);

/// The type whose cacheType is `type`.
mlir::Type cacheElement(mlir::MLIRContext *context, KvType type);

} // namespace lathe::ir

#endif // LATHE_IR_LATHE_CACHEELEMENT_H

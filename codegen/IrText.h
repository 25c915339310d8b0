/// \file
/// A look at IR text from outside before MLIR parses it.
#ifndef LATHE_CODEGEN_IRTEXT_H
#define LATHE_CODEGEN_IRTEXT_H

#include "runtime/support/Result.h"

#include <string_view>

namespace lathe::codegen {

/// Refuses text that can crash MLIR 19's parser rather than be refused by it:
///  - a value used before the place that defines it, or outside of the region
///    that does. Where a later line is an error too, the parser frees the inner
///    value while the outer op still refers to it (a dump, whose regions have
///    one block each, never does this);
///  - brackets nested deeper than maxIrNesting, on which it recurses;
///  - bytecode instead of text.
/// Looks at tokens only: text that passes may still be invalid IR. Errors:
/// InvalidInput, with the line; they do not name the file. Any thread.
runtime::Result<void> checkIrText(std::string_view text);

inline constexpr unsigned maxIrNesting = 200;

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_IRTEXT_H

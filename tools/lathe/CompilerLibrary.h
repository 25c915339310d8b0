/// \file
/// Loading the compiler when a command needs it.
#ifndef LATHE_TOOLS_LATHE_COMPILERLIBRARY_H
#define LATHE_TOOLS_LATHE_COMPILERLIBRARY_H

#include "codegen/Compiler.h"

namespace lathe::tools {

/// The compiler of liblathe-compiler.so, loaded on first use and never
/// unloaded. Errors: NotFound (the library is not installed), Environment (a
/// library that it needs is missing, or it is of another version).
runtime::Result<const codegen::CompilerApi *> loadCompiler();

/// Where the library is, or would be; for a cache that must notice a new one.
std::string compilerPath();

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_COMPILERLIBRARY_H

/// \file
/// C++ text to a shared object, in the process: Clang 19, LLVM, lld.
#ifndef LATHE_CODEGEN_CPU_CLANGCOMPILER_H
#define LATHE_CODEGEN_CPU_CLANGCOMPILER_H

#include "runtime/device/CpuFeatures.h"
#include "runtime/support/Result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace lathe::codegen {

/// Compiles one freestanding translation unit with the headers of kernels/
/// (embedded in this library; no file of the machine is read) to a shared
/// object whose only undefined symbols are memcpy, memmove and memset. If
/// `saveTemps` is not empty, the source, assembly and object are kept there as
/// `name`.{cpp,s,o}. Errors: Internal, with Clang's or lld's messages;
/// Environment (no room for temporary files). Not reentrant: lld keeps global
/// state.
runtime::Result<std::vector<uint8_t>>
compileSharedObject(const std::string &source, const runtime::IsaLayer &isa,
                    const std::string &name, const std::string &saveTemps);

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_CPU_CLANGCOMPILER_H

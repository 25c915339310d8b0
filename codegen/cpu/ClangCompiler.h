/// \file
/// C++ text to a shared object, in the process: Clang 19, LLVM, lld.
#ifndef LATHE_CODEGEN_CPU_CLANGCOMPILER_H
#define LATHE_CODEGEN_CPU_CLANGCOMPILER_H

#include "runtime/support/Result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::codegen {

/// The ISA layers of the CPU target and the Clang flags that select them.
struct IsaLayer {
  std::string_view name;
  /// Defines of kernels/cpu/simd/Simd.h.
  std::vector<std::string_view> defines;
  std::string_view cpu;
  /// Target features beyond those of `cpu`, as "+avx512vnni".
  std::vector<std::string_view> features;
  /// What a CPU must report to run the code, as CpuFeatures spells it.
  std::vector<std::string_view> required;
};

/// The layer called `name` (generic, avx2, avx512), or null.
const IsaLayer *findIsaLayer(std::string_view name);

/// The names of all layers, best last.
std::vector<std::string_view> isaLayerNames();

/// Compiles one freestanding translation unit with the headers of kernels/
/// (embedded in this library; no file of the machine is read) to a shared
/// object whose only undefined symbols are memcpy, memmove and memset. If
/// `saveTemps` is not empty, the source, assembly and object are kept there as
/// `name`.{cpp,s,o}. Errors: Internal, with Clang's or lld's messages;
/// Environment (no room for temporary files). Not reentrant: lld keeps global
/// state.
runtime::Result<std::vector<uint8_t>>
compileSharedObject(const std::string &source, const IsaLayer &isa,
                    const std::string &name, const std::string &saveTemps);

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_CPU_CLANGCOMPILER_H

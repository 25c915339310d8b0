/// \file
/// The headers of kernels/ that printed code includes, embedded in the
/// compiler so that it needs no file beside itself.
#ifndef LATHE_CODEGEN_CPU_EMBEDDEDHEADERS_H
#define LATHE_CODEGEN_CPU_EMBEDDEDHEADERS_H

#include <span>
#include <string_view>

namespace lathe::codegen {

struct EmbeddedHeader {
  std::string_view path; ///< As it is included: "kernels/cpu/Kernels.h".
  std::string_view text;
};

/// All of them; static storage.
std::span<const EmbeddedHeader> embeddedHeaders();

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_CPU_EMBEDDEDHEADERS_H

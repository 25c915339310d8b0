/// \file
/// The code of one CPU target of an engine, loaded into the process.
#ifndef LATHE_RUNTIME_ENGINE_CPUCODE_H
#define LATHE_RUNTIME_ENGINE_CPUCODE_H

#include "codegen/engine/engine_generated.h"
#include "kernels/abi/StepArgs.h"
#include "runtime/support/Result.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// The functions of a loaded code object. Any number of threads may call them;
/// they are valid as long as the CpuCode lives.
class CpuCode {
public:
  /// Loads a shared object from memory and finds in it the symbol of every
  /// entry of `program` and lathe_kernel_<id> for every kernel. The bytes are
  /// copied into a sealed memory file first, so nothing can change the code
  /// between its check and its use, and no file is written. Constructors in the
  /// object run: callers have checked its origin. Errors: InvalidInput (not an
  /// x86-64 shared object, a symbol is missing), Environment (the system
  /// forbids it). Errors do not name the engine.
  static Result<CpuCode> load(std::span<const uint8_t> object,
                              const engine::fb::Program &program);

  /// The entry point of that name ("body", "head"), or null.
  StepFunction entry(std::string_view name) const;

  /// The kernel with index `id` in the program, id < kernelCount().
  KernelFunction kernel(uint32_t id) const { return kernels[id]; }
  uint32_t kernelCount() const { return uint32_t(kernels.size()); }

private:
  struct Unload {
    void operator()(void *handle) const;
  };
  struct Entry {
    std::string name;
    StepFunction function;
  };

  CpuCode() = default;

  std::unique_ptr<void, Unload> handle;
  std::vector<Entry> entries;
  std::vector<KernelFunction> kernels;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_ENGINE_CPUCODE_H

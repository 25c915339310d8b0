/// \file
/// The CPU target: from planned kernel IR to programs and code objects.
#ifndef LATHE_CODEGEN_CPU_CPUTARGET_H
#define LATHE_CODEGEN_CPU_CPUTARGET_H

#include "codegen/cpu/KernelPrinter.h"
#include "codegen/engine/EngineWriter.h"
#include "ir/kernel/TargetInfo.h"
#include "runtime/support/Result.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <string_view>

namespace lathe::codegen {

/// The facts that passes see of a CPU.
ir::TargetInfo cpuTargetInfo();

/// The ISA layer of a target's name, "avx2" of "cpu:avx2"; that of "cpu:native"
/// is "native". Errors: InvalidInput, listing the known names.
runtime::Result<std::string> isaOfTarget(std::string_view target);

/// The description of a planned module that the engine stores.
engine::fb::ProgramT describeProgram(mlir::ModuleOp module,
                                     const ir::TargetInfo &target,
                                     const WeightOffsets &weights);

/// Prints and compiles a planned module for an ISA layer.
runtime::Result<EngineTarget> compileForCpu(mlir::ModuleOp module,
                                            const WeightOffsets &weights,
                                            const std::string &isa,
                                            const std::string &saveTemps);

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_CPU_CPUTARGET_H

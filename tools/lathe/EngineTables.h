/// \file
/// The parts of an engine as tables or JSON on standard output.
#ifndef LATHE_TOOLS_LATHE_ENGINETABLES_H
#define LATHE_TOOLS_LATHE_ENGINETABLES_H

#include "runtime/engine/Engine.h"

#include <string>

namespace lathe::tools {

/// Model, size, targets, signature, sources.
void printOverview(const runtime::Engine &engine, bool json);
/// Name, format, layout, shape and bytes of each weight.
void printWeights(const runtime::Engine &engine, bool json);
/// Arena slots and KV groups, and their bytes for some contexts.
void printMemory(const runtime::Engine &engine, bool json);
/// Targets, what they need, and whether this CPU has it.
void printTargets(const runtime::Engine &engine, bool json);
/// The kernels of a target and how often a step launches them.
void printKernels(const runtime::Engine &engine, uint32_t target, bool json);

/// The symbol of a kernel given as symbol or number. Errors: NotFound.
runtime::Result<std::string> findKernel(const runtime::Engine &engine,
                                        uint32_t target,
                                        const std::string &name);

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_ENGINETABLES_H

/// \file
/// An engine whose code is loaded and ready to be executed.
#ifndef LATHE_RUNTIME_SCHEDULE_LOADEDENGINE_H
#define LATHE_RUNTIME_SCHEDULE_LOADEDENGINE_H

#include "runtime/device/StepProgram.h"
#include "runtime/engine/Engine.h"
#include "runtime/support/Result.h"

#include <memory>
#include <string_view>

namespace lathe::runtime {

/// What a program says of its sizes, without weights and code.
StepProgram sizesOf(const engine::fb::Manifest &manifest,
                    const engine::fb::Program &program);

/// One target of an engine with its code. Immutable; any thread. Executors and
/// sessions made from it must not outlive it.
class LoadedEngine {
public:
  /// Chooses the best target for this CPU, or the one that `isa` names if it
  /// is not empty, and loads its code. Errors as Engine::selectTarget and
  /// Engine::loadCode.
  static Result<std::shared_ptr<const LoadedEngine>>
  load(std::shared_ptr<const Engine> engine, std::string_view isa = {});

  const Engine &engine() const { return *opened; }
  /// Index of the target in the manifest.
  u32 target() const { return targetIndex; }
  /// The target's name, "cpu:avx2".
  std::string_view targetName() const;
  /// The schema's program of the target.
  const engine::fb::Program &manifestProgram() const;
  const CpuCode &code() const { return loadedCode; }
  /// What an executor needs of it.
  const StepProgram &program() const { return stepProgram; }

private:
  LoadedEngine(std::shared_ptr<const Engine> engine, u32 target, CpuCode code);

  std::shared_ptr<const Engine> opened;
  u32 targetIndex;
  CpuCode loadedCode;
  StepProgram stepProgram;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SCHEDULE_LOADEDENGINE_H

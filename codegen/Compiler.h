/// \file
/// The compiler's only interface: a model file becomes an engine file. Nothing
/// of MLIR, LLVM or Clang is visible here, so that the program that offers
/// `compile` can load the compiler when it needs it (Loader.h).
#ifndef LATHE_CODEGEN_COMPILER_H
#define LATHE_CODEGEN_COMPILER_H

#include "runtime/device/StepProgram.h"
#include "runtime/support/Result.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::codegen {

struct CompileOptions {
  /// Where the engine goes; with `stopAfter`, where the IR goes.
  std::string output;
  /// "cpu:native", "cpu:avx2", …; empty: cpu:native.
  std::vector<std::string> targets;
  /// Optional phases to leave out.
  std::vector<std::string> disabledPhases;
  /// Stop after this phase and write its IR as text.
  std::string stopAfter;
  /// Phases whose IR goes to `onIr`; "all" for every one.
  std::vector<std::string> printIrAfter;
  /// Shared objects with further passes (passes/Plugin.h), loaded for good.
  /// Loading one runs its code.
  std::vector<std::string> passPlugins;
  /// "NAME@after:PHASE": runs pass NAME, which a plugin or MLIR has registered,
  /// behind the phase. NAME may carry options: "NAME{key=value}".
  std::vector<std::string> addedPasses;
  /// Run the reference interpreter before and after each pass over the graph,
  /// run the engine, and stop at the first that computes something else.
  bool checkPasses = false;
  /// Fail if a phase chose a slower path; otherwise each is a notice.
  bool strict = false;
  /// Keep sources, assembly and objects here; empty: nowhere.
  std::string saveTemps;
  /// The model file that a .mlir's weights come from, if it does not lie beside
  /// it under its own name.
  std::string source;
  /// Positions to cover; 0: as many as the model was trained for, up to 131072.
  int64_t context = 0;
  /// f16 or f32.
  std::string kvDtype = "f16";
  /// Sign the engine with this user's key.
  bool sign = true;

  /// What is being done ("fuse-attention", "write"), and how far it is: `done`
  /// of `total` units, total 0 if unknown. On the calling thread.
  std::function<void(std::string_view what, uint64_t done, uint64_t total)>
      progress;
  std::function<void(std::string_view phase, std::string_view text)> onIr;
  /// A remark or warning for the user, one line. Remarks are about slower
  /// paths; one that differs only in its place is told once.
  std::function<void(std::string_view message)> onNotice;
};

struct CompileSummary {
  uint64_t tensors = 0;
  uint64_t weightBytes = 0;
  uint64_t fileBytes = 0;
  uint64_t kernels = 0;
  double seconds = 0;
  std::vector<std::string> targets;
};

/// What an engine would take, known before it is made.
struct EngineSizes {
  runtime::StepProgram program; ///< Without code and weights.
  uint64_t parameters = 0;
  uint64_t weightBytes = 0;
};

/// One phase of the pipeline, for --print-pipeline.
struct PhaseInfo {
  int number;
  std::string name;
  std::string summary;
  bool mandatory;
};

/// Compiles a .gguf or a dumped .mlir, or an engine for other targets. Errors
/// name the file and the item; nothing is left behind half-written. One call at
/// a time per process.
runtime::Result<CompileSummary> compile(const std::string &input,
                                        const CompileOptions &options);

/// Runs the phases over the header of a .gguf; no tensor is read. Takes
/// disabledPhases, context, kvDtype and onNotice of the options. Errors as
/// compile().
runtime::Result<EngineSizes> measure(const std::string &input,
                                     const CompileOptions &options);

/// The phases, in order.
std::vector<PhaseInfo> pipeline();

/// What liblathe-compiler.so exports as `latheCompiler`: the functions above.
struct CompilerApi {
  uint32_t version;
  runtime::Result<CompileSummary> (*compile)(const std::string &,
                                             const CompileOptions &);
  runtime::Result<EngineSizes> (*measure)(const std::string &,
                                          const CompileOptions &);
  std::vector<PhaseInfo> (*pipeline)();
};

/// The version of CompilerApi; the program that loads the compiler is built
/// from the same tree and refuses another.
inline constexpr uint32_t compilerApiVersion = 4;

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_COMPILER_H

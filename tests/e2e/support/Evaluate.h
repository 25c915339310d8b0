/// \file
/// Compiling a model and evaluating it in different manners, which must all
/// give the same bits.
#ifndef LATHE_TESTS_E2E_SUPPORT_EVALUATE_H
#define LATHE_TESTS_E2E_SUPPORT_EVALUATE_H

#include "codegen/Compiler.h"
#include "runtime/schedule/Session.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What liblathe-compiler.so exports.
extern "C" const lathe::codegen::CompilerApi *latheCompiler();

namespace lathe::tests {

/// The ISA layers that this CPU runs, the simplest first.
std::vector<std::string> nativeIsas();

/// Compiles a model for `isas` into `output` with a KV cache of `kvDtype`; with
/// `strict`, a slower path that a phase chooses is an error.
runtime::Result<codegen::CompileSummary>
compileModel(const std::string &model, const std::string &output,
             std::span<const std::string> isas, const std::string &kvDtype,
             bool strict = true);

/// Loads an engine that compileModel wrote.
runtime::Result<std::shared_ptr<const runtime::LoadedEngine>>
loadEngine(const std::string &path, std::string_view isa);

/// The logits [tokens - skip][vocab] behind the first `skip` tokens of a
/// sequence that is fed in steps of `chunk` rows.
runtime::Result<std::vector<f32>>
logitsOf(const std::shared_ptr<const runtime::LoadedEngine> &engine,
         std::span<const i32> tokens, u32 skip, u32 chunk, u32 threads);

/// The same when each step also holds rows of 15 other sequences, some of them
/// in prefill and some in decode.
runtime::Result<std::vector<f32>>
logitsInBatch(const runtime::LoadedEngine &engine, std::span<const i32> tokens,
              u32 skip, u32 threads);

/// `count` greedy ids after a prompt.
runtime::Result<std::vector<i32>>
greedyIds(const std::shared_ptr<const runtime::LoadedEngine> &engine,
          std::span<const i32> prompt, u32 count);

} // namespace lathe::tests

#endif // LATHE_TESTS_E2E_SUPPORT_EVALUATE_H

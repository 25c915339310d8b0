/// \file
/// A seeded random model: its golden values, its engine, and its logits in any
/// manner of evaluation. Paths are relative to the project's root, where ctest
/// runs tests; the models lie in $LATHE_BINARY_DIR/tests/seeded
/// (tests/golden/CMakeLists.txt).
#ifndef LATHE_TESTS_E2E_SEEDED_SEEDEDMODEL_H
#define LATHE_TESTS_E2E_SEEDED_SEEDEDMODEL_H

#include "codegen/Compiler.h"
#include "runtime/schedule/Session.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lathe::tests {

/// What llama.cpp says of a model.
struct Golden {
  std::vector<i32> tokens;     ///< All 300 ids.
  u32 promptTokens;            ///< So many of them precede `greedy`.
  std::vector<u32> positions;  ///< Where `logits` are known.
  std::vector<f32> logits;     ///< [positions][vocabulary]
  std::vector<i32> greedy;     ///< 64 ids.
  std::optional<f64> peerNmse; ///< Of llama.cpp's own quantized run.
  u32 vocabulary;
};

/// Names of all seeded models.
std::vector<std::string> seededNames();

/// The golden values of a model. Throws if they cannot be read.
Golden readGolden(const std::string &name);

/// Where a model's GGUF lies.
std::string seededPath(const std::string &name);

/// The ISA layers that this CPU runs, the simplest first.
std::vector<std::string> nativeIsas();

/// Compiles a model for `isas` into `output` with a KV cache of `kvDtype`.
runtime::Result<codegen::CompileSummary>
compileModel(const std::string &model, const std::string &output,
             std::span<const std::string> isas, const std::string &kvDtype);

/// Loads an engine that compileModel wrote.
runtime::Result<std::shared_ptr<const runtime::LoadedEngine>>
loadEngine(const std::string &path, std::string_view isa);

/// The logits [tokens][vocab] of a sequence fed in steps of `chunk` rows.
runtime::Result<std::vector<f32>>
logitsOf(const std::shared_ptr<const runtime::LoadedEngine> &engine,
         std::span<const i32> tokens, u32 chunk, u32 threads);

/// The same when each step also holds rows of 15 other sequences, some of them
/// in prefill and some in decode.
runtime::Result<std::vector<f32>>
logitsInBatch(const runtime::LoadedEngine &engine, std::span<const i32> tokens,
              u32 threads);

/// `count` greedy ids after a prompt.
runtime::Result<std::vector<i32>>
greedyIds(const std::shared_ptr<const runtime::LoadedEngine> &engine,
          std::span<const i32> prompt, u32 count);

} // namespace lathe::tests

#endif // LATHE_TESTS_E2E_SEEDED_SEEDEDMODEL_H

/// \file
/// A seeded random model and its golden values. Paths are relative to the
/// project's root, where ctest runs tests; the models lie in
/// $LATHE_BINARY_DIR/tests/seeded (tests/golden/CMakeLists.txt).
#ifndef LATHE_TESTS_E2E_SEEDED_SEEDEDMODEL_H
#define LATHE_TESTS_E2E_SEEDED_SEEDEDMODEL_H

#include "kernels/abi/Types.h"

#include <optional>
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

/// Of F32 models; llama.cpp itself is within 1e-10 of float64.
inline constexpr f64 nmseMax = 1e-8;
/// The same where activations are rounded to bf16; rounded to int8 blocks, they
/// cost ten times as much (2e-3).
inline constexpr f64 bf16NmseMax = 0x1p-12;

/// Sum of squared differences between logits [tokens][vocabulary] and the
/// golden ones at their positions, relative to the golden ones' sum of squares.
f64 nmseOf(const std::vector<f32> &logits, const Golden &golden);

/// Where a model's GGUF lies.
std::string seededPath(const std::string &name);

} // namespace lathe::tests

#endif // LATHE_TESTS_E2E_SEEDED_SEEDEDMODEL_H

#include "runtime/serve/Fingerprint.h"
#include "tests/unit/engine/TinyEngine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace lathe::runtime;
using namespace lathe::runtime::serve;
using namespace lathe::tests;

namespace {

std::string fingerprintOf(const std::string &path,
                          const lathe::codegen::EngineDescription &engine) {
  EXPECT_TRUE(lathe::codegen::writeEngine(path, engine).has_value());
  auto loaded = LoadedEngine::load(openOrFail(path), "generic");
  EXPECT_TRUE(loaded.has_value());
  return systemFingerprint(**loaded);
}

TEST(Fingerprint, IsTheTrailersDigestAndTheLayer) {
  TempDir dir;
  std::string path = dir.path("tiny.lathe");
  std::string print = fingerprintOf(path, tinyDescription());
  auto bytes = readBytes(path);
  auto trailer = *decodeTrailer(std::span(bytes).last(engineTrailerBytes));
  std::string digest = Sha256::toHex(trailer.digest);
  EXPECT_EQ(engineHash(*openOrFail(path)), digest);
  EXPECT_EQ(print, "fp_" + digest.substr(0, 16) + "_generic");
}

TEST(Fingerprint, DiffersWithTheEngineAndNotWithItsPlace) {
  TempDir dir;
  auto description = tinyDescription();
  std::string one = fingerprintOf(dir.path("one.lathe"), description);
  EXPECT_EQ(fingerprintOf(dir.path("two.lathe"), description), one);
  description.weights[0].produce =
      patternProducer(77, lathe::codegen::WeightPlacer()
                              .add(lathe::kernels::Format::Q8_0, "r16", 16, 32)
                              ->bytes);
  EXPECT_NE(fingerprintOf(dir.path("one.lathe"), description), one);
}

} // namespace

// Takes the input as the manifest of an engine whose header, digest and trailer
// are right, opens it and uses all that it offers without running it. An input
// with the identifier of a tokenizer section is read as one.

#include "runtime/engine/Engine.h"
#include "runtime/engine/TokenizerSection.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace lathe;
using namespace lathe::runtime;

namespace {

/// Where the manifest lies; the seeds' last section ends here.
constexpr uint64_t manifestOffset = 65536;

void write(int fd, std::span<const uint8_t> bytes, uint64_t offset) {
  if (::pwrite(fd, bytes.data(), bytes.size(), off_t(offset)) !=
      ssize_t(bytes.size()))
    std::abort();
}

void readTokenizer(std::span<const uint8_t> input) {
  // Sections are read from aligned copies.
  std::vector<uint8_t> copy(input.begin(), input.end());
  (void)decodeTokenizer(copy, 1 << 20);
}

void openEngine(std::span<const uint8_t> manifest) {
  EngineHeader header{manifestOffset + manifest.size() + engineTrailerBytes,
                      manifestOffset, manifest.size()};
  auto headerBytes = encodeHeader(header);
  EngineTrailer trailer;
  trailer.digest = manifestDigest(headerBytes, manifest);

  int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0)
    std::abort();
  write(fd, headerBytes, 0);
  write(fd, manifest, manifestOffset);
  write(fd, encodeTrailer(trailer), manifestOffset + manifest.size());
  OpenOptions options;
  options.trust = TrustStore("/nonexistent");
  auto opened = Engine::open("/proc/self/fd/" + std::to_string(fd), options);
  ::close(fd);
  if (!opened)
    return;
  const Engine &engine = **opened;
  for (const std::string &phase : engine.phases())
    (void)engine.ir(phase);
  for (uint32_t i = 0; i < engine.manifest().targets()->size(); ++i) {
    (void)engine.sources(i);
    (void)engine.loadCode(i, CpuFeatures()); // refused: unsigned
  }
  (void)engine.tokenizer();
  (void)engine.selectTarget(CpuFeatures::detect());
  (void)engine.verifySections();
  (void)engine.verifyWeights();
  engine::fb::ManifestT fields;
  if (manifest.size() < 1 << 16)
    engine.manifest().UnPackTo(&fields);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size >= 8 && std::memcmp(data + 4, "LTOK", 4) == 0)
    readTokenizer({data, size});
  else
    openEngine({data, size});
  return 0;
}

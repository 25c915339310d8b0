// Reads seeded mutations of a GGUF file or an engine as lathe would, one after
// another, each within 2 s of processor time and 200 MB of heap beyond the
// file's size. Ends at the first fault and leaves its file behind; tests/fuzz/
// soak goes on behind it. Built with AddressSanitizer and UBSan.

#include "frontend/gguf/GgufFile.h"
#include "frontend/models/Tokenizer.h"
#include "runtime/engine/Engine.h"
#include "runtime/text/Tokenizer.h"
#include "tests/fuzz/mutations/Mutate.h"
#include "tests/unit/support/GgufReads.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <optional>
#include <sanitizer/allocator_interface.h>
#include <string_view>
#include <sys/time.h>
#include <unistd.h>

using namespace lathe;
using namespace lathe::tests;
using namespace lathe::runtime;

namespace {

constexpr size_t allowedHeap = 200 * 1000 * 1000;
constexpr time_t allowedSeconds = 2;
/// Against waits that use no processor time.
constexpr unsigned allowedWallSeconds = 60;

std::atomic<size_t> liveBytes = 0;
std::atomic<size_t> mostLiveBytes = 0;

void onMalloc(const volatile void *, size_t bytes) {
  size_t live = liveBytes += bytes;
  size_t most = mostLiveBytes;
  while (live > most && !mostLiveBytes.compare_exchange_weak(most, live))
    ;
}

void onFree(const volatile void *memory) {
  if (memory)
    liveBytes -=
        __sanitizer_get_allocated_size(const_cast<const void *>(memory));
}

/// All of a tokenizer: true if it could be made.
bool useTokenizer(Result<TokenizerSpec> spec) {
  if (!spec)
    return false;
  auto tokenizer = Tokenizer::create(std::move(*spec));
  if (!tokenizer)
    return false;
  using namespace std::string_view_literals;
  auto text = " Hello, world! 12345 It's\n\n\t日本 naïve \0\xff<|eos|>"sv;
  for (bool special : {false, true}) {
    auto ids = tokenizer->encode(
        text, {.addSpecial = special, .parseSpecial = special});
    if (ids)
      (void)tokenizer->decode(*ids, {.showSpecial = special});
  }
  for (int32_t id = -1; id <= tokenizer->vocabularySize(); ++id) {
    (void)tokenizer->tokenBytes(id);
    (void)tokenizer->isSpecial(id);
    (void)tokenizer->isEnd(id);
  }
  return true;
}

/// True if the file was accepted whole.
bool readGguf(const std::string &path) {
  auto file = frontend::GgufFile::open(path);
  if (!file)
    return false;
  bool whole = readWholeGguf(*file);
  return useTokenizer(frontend::readTokenizer(*file)) && whole;
}

bool readEngine(const std::string &path) {
  OpenOptions options;
  options.trust = TrustStore("/nonexistent");
  auto opened = Engine::open(path, options);
  if (!opened)
    return false;
  const Engine &engine = **opened;
  for (const std::string &phase : engine.phases())
    (void)engine.ir(phase);
  for (uint32_t i = 0; i < engine.manifest().targets()->size(); ++i) {
    (void)engine.sources(i);
    (void)engine.loadCode(i, CpuFeatures::detect()); // refused: unsigned
  }
  (void)engine.selectTarget(CpuFeatures::detect());
  engine::fb::ManifestT fields;
  engine.manifest().UnPackTo(&fields);
  bool whole = engine.verifySections() && engine.verifyWeights();
  return useTokenizer(engine.tokenizer()) && whole;
}

uint64_t processorMicroseconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return uint64_t(now.tv_sec) * 1000000 + uint64_t(now.tv_nsec) / 1000;
}

void write(const std::string &path, const Bytes &bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char *>(bytes.data()),
            std::streamsize(bytes.size()));
  if (!out.flush()) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    std::exit(3);
  }
}

} // namespace

int main(int argc, char **argv) {
  bool only = argc == 7 && std::string_view(argv[6]) == "--write";
  if (argc != 6 && !only) {
    std::fprintf(stderr,
                 "usage: %s gguf|engine FILE FIRST COUNT FOLDER [--write]\n"
                 "Mutations FIRST to FIRST + COUNT - 1, each written to FOLDER "
                 "while it is read;\nwith --write, only written.\n",
                 argv[0]);
    return 2;
  }
  std::string_view kind = argv[1];
  auto mutator =
      kind == "gguf" ? makeGgufMutator(argv[2]) : makeEngineMutator(argv[2]);
  if (!mutator)
    return 3;
  auto read = kind == "gguf" ? readGguf : readEngine;
  if (!read(argv[2])) {
    std::fprintf(stderr, "%s is refused even as it is\n", argv[2]);
    return 3;
  }
  uint64_t first = std::strtoull(argv[3], nullptr, 10);
  uint64_t count = std::strtoull(argv[4], nullptr, 10);
  if (!__sanitizer_install_malloc_and_free_hooks(onMalloc, onFree))
    return 3;
  uint64_t accepted = 0, slowest = 0;
  size_t mostBeyond = 0;
  for (uint64_t number = first; number < first + count; ++number) {
    std::string path =
        std::string(argv[5]) + "/" + std::to_string(number) + "." + argv[1];
    Bytes bytes = mutator->mutation(number);
    write(path, bytes);
    if (only)
      continue;
    size_t before = liveBytes;
    mostLiveBytes = before;
    uint64_t started = processorMicroseconds();
    itimerval limit = {{0, 0}, {allowedSeconds, 0}};
    ::setitimer(ITIMER_PROF, &limit, nullptr); // SIGPROF ends the process
    ::alarm(allowedWallSeconds);
    accepted += read(path);
    limit.it_value = {0, 0};
    ::setitimer(ITIMER_PROF, &limit, nullptr);
    ::alarm(0);
    slowest = std::max(slowest, processorMicroseconds() - started);
    size_t heap = mostLiveBytes - before;
    size_t beyond = heap - std::min(heap, bytes.size());
    mostBeyond = std::max(mostBeyond, beyond);
    if (beyond > allowedHeap) {
      std::fprintf(stderr, "%s: %zu bytes of heap\n", path.c_str(), heap);
      return 4;
    }
    ::unlink(path.c_str());
  }
  if (only)
    return 0;
  std::printf("{\"accepted\": %llu, \"microseconds\": %llu, \"beyond\": %zu}\n",
              static_cast<unsigned long long>(accepted),
              static_cast<unsigned long long>(slowest), mostBeyond);
  return 0;
}

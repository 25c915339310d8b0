// Runs a fuzz target without libFuzzer: over every file of a corpus folder and
// over seeded mutations of each. Prints how many inputs ran; a fault is a crash
// or a sanitizer report, and stderr then names the last input.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

constexpr int mutationsPerFile = 500;

void mutate(Bytes &bytes, std::mt19937_64 &random) {
  static constexpr uint64_t extreme[] = {0,          1,          0x7fffffff,
                                         0xffffffff, 1ull << 62, UINT64_MAX};
  for (uint64_t n = 1 + random() % 4; n > 0 && !bytes.empty(); --n) {
    size_t at = random() % bytes.size();
    auto where = bytes.begin() + static_cast<ptrdiff_t>(at);
    switch (random() % 5) {
    case 0:
      bytes[at] ^= static_cast<uint8_t>(1u << random() % 8);
      break;
    case 1:
      std::memcpy(&bytes[at], &extreme[random() % std::size(extreme)],
                  std::min<size_t>(8, bytes.size() - at));
      break;
    case 2:
      bytes.erase(where);
      break;
    case 3:
      bytes.insert(where, static_cast<uint8_t>(random()));
      break;
    case 4:
      bytes.resize(at);
      break;
    }
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
    return 2;
  }
  std::vector<std::string> files;
  for (const auto &entry : std::filesystem::directory_iterator(argv[1]))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  size_t inputs = 0;
  for (const std::string &file : files) {
    std::ifstream in(file, std::ios::binary);
    Bytes original{std::istreambuf_iterator<char>(in), {}};
    for (int i = 0; i <= mutationsPerFile; ++i, ++inputs) {
      std::mt19937_64 random(static_cast<uint64_t>(i));
      Bytes bytes = original;
      if (i > 0)
        mutate(bytes, random);
      std::fprintf(stderr, "\r%s, mutation %d", file.c_str(), i);
      LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
  }
  std::fprintf(stderr, "\n");
  std::printf("%zu inputs from %zu files\n", inputs, files.size());
  return files.empty();
}

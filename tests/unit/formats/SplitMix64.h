/// \file
/// The random stream that the golden maker and the tests share.
#ifndef LATHE_TESTS_UNIT_FORMATS_SPLITMIX64_H
#define LATHE_TESTS_UNIT_FORMATS_SPLITMIX64_H

#include <cstdint>
#include <cstring>
#include <vector>

namespace lathe::tests {

/// SplitMix64 (Steele, Lea and Flood 2014).
class SplitMix64 {
public:
  explicit SplitMix64(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// The next values' bytes, little-endian, cut to `count`.
  std::vector<uint8_t> bytes(size_t count) {
    std::vector<uint8_t> out((count + 7) / 8 * 8);
    for (size_t at = 0; at < out.size(); at += 8) {
      uint64_t word = next();
      std::memcpy(&out[at], &word, 8);
    }
    out.resize(count);
    return out;
  }

private:
  uint64_t state;
};

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_FORMATS_SPLITMIX64_H

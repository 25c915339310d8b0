/// \file
/// Seeded damage to model files and engines: of bytes, and of the fields that
/// a reader trusts most. The same file and number give the same result.
#ifndef LATHE_TESTS_FUZZ_MUTATIONS_MUTATE_H
#define LATHE_TESTS_FUZZ_MUTATIONS_MUTATE_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace lathe::tests {

using Bytes = std::vector<uint8_t>;

/// A source of numbers that is the same with every standard library.
class Dice {
public:
  explicit Dice(uint64_t seed) : random(seed) {}
  /// One of 0 to `sides` - 1; `sides` > 0.
  uint64_t roll(uint64_t sides) { return random() % sides; }
  bool oneIn(uint64_t chances) { return roll(chances) == 0; }

private:
  std::mt19937_64 random;
};

/// A number that breaks arithmetic, or is a little off `old`.
inline uint64_t hostileNumber(Dice &dice, uint64_t old) {
  static constexpr uint64_t extreme[] = {0,
                                         1,
                                         2,
                                         0x7f,
                                         0xff,
                                         0x7fff,
                                         0xffff,
                                         0x10000,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         1ull << 32,
                                         1ull << 40,
                                         (1ull << 61),
                                         (1ull << 62) + 1,
                                         1ull << 63,
                                         UINT64_MAX,
                                         0x7fc00000,
                                         0xff800000,
                                         UINT64_MAX - 31,
                                         1u << 20,
                                         1u << 24,
                                         1u << 28,
                                         uint64_t(4096) << 20};
  switch (dice.roll(4)) {
  case 0:
    return old + dice.roll(17) - 8;
  case 1:
    return dice.roll(32);
  case 2:
    return old << dice.roll(16);
  default:
    return extreme[dice.roll(std::size(extreme))];
  }
}

/// Puts a hostile number into the little-endian field of `width` <= 8 bytes at
/// `at`, which may reach past the end.
inline void breakField(Dice &dice, Bytes &bytes, size_t at, size_t width) {
  if (at >= bytes.size())
    return;
  width = std::min(width, bytes.size() - at);
  uint64_t value = 0;
  std::memcpy(&value, &bytes[at], width);
  value = hostileNumber(dice, value);
  std::memcpy(&bytes[at], &value, width);
}

/// One change to bytes [begin, end), which must not be empty. With
/// `keepSize`, none that moves the bytes behind.
inline void breakBytes(Dice &dice, Bytes &bytes, size_t begin, size_t end,
                       bool keepSize) {
  size_t at = begin + dice.roll(end - begin);
  size_t length = std::min<size_t>(1 + dice.roll(64), end - at);
  auto where = bytes.begin() + std::ptrdiff_t(at);
  auto behind = where + std::ptrdiff_t(length);
  switch (dice.roll(keepSize ? 5 : 8)) {
  case 0:
    bytes[at] ^= uint8_t(1u << dice.roll(8));
    break;
  case 1:
    bytes[at] = uint8_t(dice.roll(256));
    break;
  case 2:
    breakField(dice, bytes, at, std::min<size_t>(length, 8));
    break;
  case 3: { // A block over another one.
    Bytes block(where, behind);
    std::copy_n(block.begin(), length,
                bytes.begin() + std::ptrdiff_t(begin + dice.roll(end - begin -
                                                                 length + 1)));
    break;
  }
  case 4:
    std::fill(where, behind, dice.oneIn(2) ? 0 : 0xff);
    break;
  case 5: { // A block twice.
    Bytes block(where, behind);
    bytes.insert(where, block.begin(), block.end());
    break;
  }
  case 6:
    bytes.erase(where, behind);
    break;
  case 7:
    bytes.resize(at);
    break;
  }
}

/// Makes damaged copies of one file.
class Mutator {
public:
  virtual ~Mutator() = default;
  /// The damaged copy of a number.
  virtual Bytes mutation(uint64_t number) const = 0;
};

/// For a GGUF file and an engine that open. Null, with a message on stderr, if
/// it does not.
std::unique_ptr<Mutator> makeGgufMutator(const std::string &path);
std::unique_ptr<Mutator> makeEngineMutator(const std::string &path);

} // namespace lathe::tests

#endif // LATHE_TESTS_FUZZ_MUTATIONS_MUTATE_H

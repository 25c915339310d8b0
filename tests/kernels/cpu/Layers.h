/// \file
/// The layer libraries that this CPU can run, and how tests call a kernel.
#ifndef LATHE_TESTS_KERNELS_CPU_LAYERS_H
#define LATHE_TESTS_KERNELS_CPU_LAYERS_H

#include "tests/kernels/contract/Random.h"
#include "tests/kernels/cpu/Cases.h"

#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

namespace lathe::tests {

/// The layers that this CPU runs; a missing one is named on stderr, once.
const std::vector<const Layer *> &layers();

/// A region of one element in scalars. `sides` are its side operands.
f32 regionOf(Region region, f32 first, f32 second, const f32 *sides);

/// Seeded weight rows `[rows][k]` in GGUF order, packed as a segment wants
/// them: r16, with the 16-row groups of two matrices alternating if `paired`
/// (row i of the result's second matrix is row rows / 2 + i of `source`).
struct PackedWeights {
  std::vector<u8> source;
  std::vector<u8> packed;
};
PackedWeights packedWeights(RandomInputs &random, Format format, i64 rows,
                            i64 k, bool paired);

/// Runs a kernel as a team: by `threads` calls, from the last thread to the
/// first, or really at the same time.
void runTeam(KernelFunction function, const StepArgs *args,
             const std::vector<const void *> &operands, u32 rows, u32 threads,
             bool parallel = false);

/// Memory whose end is checked: kernels must not write past an output.
template <typename T> class Guarded {
public:
  explicit Guarded(u64 count) : bytes(count * sizeof(T) + guardBytes, fill) {}
  T *data() { return reinterpret_cast<T *>(bytes.data()); }
  u64 size() const { return (bytes.size() - guardBytes) / sizeof(T); }
  T &operator[](u64 at) { return data()[at]; }
  bool guardIntact() const {
    for (u64 i = bytes.size() - guardBytes; i < bytes.size(); ++i)
      if (bytes[i] != fill)
        return false;
    return true;
  }

private:
  static constexpr u64 guardBytes = 128;
  static constexpr u8 fill = 0xa5;
  std::vector<u8> bytes;
};

/// Fails unless both rows have the same bits (any NaN equals any NaN).
void expectSame(const std::string &what, const f32 *expected, const f32 *got,
                u64 count);
void expectSame(const std::string &what, const ActivationBlock *expected,
                const ActivationBlock *got, u64 count);

} // namespace lathe::tests

#endif // LATHE_TESTS_KERNELS_CPU_LAYERS_H

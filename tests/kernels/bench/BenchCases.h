/// \file
/// The kernels of a bench layer with operands, for kernels-bench, which takes
/// their time, and kernels-instructions, which has their instructions counted.
#ifndef LATHE_TESTS_KERNELS_BENCH_BENCHCASES_H
#define LATHE_TESTS_KERNELS_BENCH_BENCHCASES_H

#include "tests/kernels/bench/BenchLayer.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lathe::bench {

namespace generic {
extern const BenchLayer layer;
}
namespace avx2 {
extern const BenchLayer layer;
}
namespace avx512 {
extern const BenchLayer layer;
}

/// Memory for weights, of the process.
struct WeightMemory {
  const u8 *bytes;
  u64 size;
};

/// Huge-page memory of pseudo-random bytes without NaN patterns, the same in
/// each run; the values do not matter to the speed of anything measured.
WeightMemory makeWeights(u64 size);

/// What one call moves and multiplies.
struct Work {
  f64 bytes, int8Macs, f32Macs;
};

/// A kernel and its operands, called as often as one likes on one thread.
class BenchCase {
public:
  BenchCase(KernelFunction function, u32 rows)
      : function(function), rows(rows) {}
  BenchCase(const BenchCase &) = delete;
  BenchCase &operator=(const BenchCase &) = delete;
  virtual ~BenchCase() = default;

  /// Before each call: takes other weights, keys or tokens, so that the caches
  /// are as useless as in decoding.
  virtual void next() {}
  void call() const { function(&args, operands.data(), rows, 0, 1); }

  const Work &work() const { return each; }

protected:
  KernelFunction function;
  u32 rows;
  StepArgs args = {};
  std::vector<const void *> operands;
  Work each = {};
};

struct NamedCase {
  std::string name;
  /// A modest shape: its instructions are counted.
  bool counted;
  std::function<std::unique_ptr<BenchCase>(const WeightMemory &)> make;
};

/// Most bytes of weights that one call reads.
inline constexpr u64 mostWeightBytes = u64(64) << 20;

/// The cases of a layer; `make` needs at least mostWeightBytes and goes through
/// all that it gets. Neither the layer nor the memory is copied.
std::vector<NamedCase> casesOf(const BenchLayer &layer);

} // namespace lathe::bench

#endif // LATHE_TESTS_KERNELS_BENCH_BENCHCASES_H

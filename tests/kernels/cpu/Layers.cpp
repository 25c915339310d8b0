#include "tests/kernels/cpu/Layers.h"

#include "kernels/formats/Layout.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace lathe::tests {

namespace generic {
extern const Layer layer;
}
namespace avx2 {
extern const Layer layer;
}
namespace avx512 {
extern const Layer layer;
}
namespace avx512bf16 {
extern const Layer layer;
}
namespace avx512_emulated {
extern const Layer layer;
}

const std::vector<const Layer *> &layers() {
  static const std::vector<const Layer *> found = [] {
    std::vector<const Layer *> list = {&generic::layer,
                                       &avx512_emulated::layer};
    __builtin_cpu_init();
    auto add = [&](const Layer &layer, bool runs) {
      if (runs)
        list.push_back(&layer);
      else
        std::fprintf(stderr, "SKIPPED: this CPU does not run layer %s\n",
                     layer.name);
    };
    bool avx2Runs = __builtin_cpu_supports("avx2") &&
                    __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
    add(avx2::layer, avx2Runs);
    bool avx512Runs = avx2Runs && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vnni");
    add(avx512::layer, avx512Runs);
    add(avx512bf16::layer, avx512Runs && __builtin_cpu_supports("avx512bf16"));
    return list;
  }();
  return found;
}

f32 regionOf(Region region, f32 first, f32 second, const f32 *sides) {
  switch (region) {
  case Region::Identity:
    return first;
  case Region::Residual:
    return first + sides[0];
  case Region::Weight:
    return first * sides[0];
  case Region::AllSides:
    return std::fma(first, sides[0], sides[1]) - sides[2];
  case Region::SwiGlu:
    return contract::silu(first) * second;
  case Region::Gelu:
    return contract::gelu(first);
  case Region::Exp:
    return contract::expf(first);
  case Region::Tanh:
    return contract::tanhf(first);
  case Region::Clamp: {
    auto nan = [](f32 a, f32 b) { return std::isnan(a) ? a : b; };
    f32 high = sides[0], low = -sides[0];
    if (std::isnan(first) || std::isnan(high))
      return nan(first, high);
    // fmin and fmax leave the order of zeros open; arith does not.
    f32 least =
        first < high || (first == high && std::signbit(first)) ? first : high;
    return least > low || (least == low && !std::signbit(least)) ? least : low;
  }
  case Region::Misc:
    return -std::fabs(first) / std::sqrt(first * first + 0.5f) + -0.0f;
  }
  return 0;
}

PackedWeights packedWeights(RandomInputs &random, Format format, i64 rows,
                            i64 k, bool paired) {
  PackedWeights weights;
  u64 total = u64(paired ? 2 * rows : rows);
  weights.source = random.weights(format, total, u64(k));
  u64 rowBytes = contract::weightRowBytes(format, u64(k));
  u64 groupBytes = *kernels::packedGroupBytes(format, u64(k));
  u64 matrices = paired ? 2 : 1;
  u64 groups = u64(rows + 15) / 16;
  weights.packed.resize(groups * matrices * groupBytes);
  for (u64 group = 0; group < groups; ++group)
    for (u64 matrix = 0; matrix < matrices; ++matrix) {
      std::array<const u8 *, 16> pointers = {};
      for (u64 i = 0; i < 16; ++i)
        if (group * 16 + i < u64(rows))
          pointers[i] = weights.source.data() +
                        (matrix * u64(rows) + group * 16 + i) * rowBytes;
      kernels::packGroup(format, pointers, u64(k),
                         weights.packed.data() +
                             (group * matrices + matrix) * groupBytes);
    }
  return weights;
}

void runTeam(KernelFunction function, const StepArgs *args,
             const std::vector<const void *> &operands, u32 rows, u32 threads,
             bool parallel) {
  if (!parallel) {
    for (u32 thread = threads; thread-- > 0;)
      function(args, operands.data(), rows, thread, threads);
    return;
  }
  std::vector<std::thread> team;
  for (u32 thread = 0; thread < threads; ++thread)
    team.emplace_back(function, args, operands.data(), rows, thread, threads);
  for (std::thread &thread : team)
    thread.join();
}

void expectSame(const std::string &what, const f32 *expected, const f32 *got,
                u64 count) {
  u64 at = contract::firstDifference(expected, got, count);
  if (at == count)
    return;
  ADD_FAILURE() << what << ": value " << at << " of " << count << " is "
                << got[at] << ", not " << expected[at];
}

void expectSame(const std::string &what, const ActivationBlock *expected,
                const ActivationBlock *got, u64 count) {
  for (u64 i = 0; i < count; ++i)
    if (std::memcmp(&expected[i], &got[i], sizeof(ActivationBlock)) != 0) {
      ADD_FAILURE() << what << ": activation block " << i << " of " << count
                    << " differs: d " << got[i].d << ", not " << expected[i].d;
      return;
    }
}

} // namespace lathe::tests

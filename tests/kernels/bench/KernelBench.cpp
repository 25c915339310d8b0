// Each skeleton on one thread, for every ISA layer that this CPU runs: bytes
// and operations per second and the share of the limit, which is bandwidth or
// the peak of the layer's instructions, measured before, whichever binds. At
// few rows the weights of many layers in turn make the caches useless, as in
// decoding; from 64 rows on it does not matter. Not run by ctest.

#include "runtime/device/MachineLimits.h"
#include "tests/kernels/bench/BenchCases.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace lathe::bench {

namespace {

/// Bytes of weights that one measurement goes through in turn.
constexpr u64 workingSet = u64(256) << 20;

/// What a layer can do on one thread, per second.
struct Peaks {
  f64 bytes, int8Macs, f32Macs;
};

void report(benchmark::State &state, const Peaks &peaks, const Work &work) {
  auto rate = [&](const char *name, f64 each) {
    if (each > 0)
      state.counters[name] = benchmark::Counter(each * f64(state.iterations()),
                                                benchmark::Counter::kIsRate,
                                                benchmark::Counter::kIs1000);
  };
  rate("bytes", work.bytes);
  rate("ops", 2 * (work.int8Macs + work.f32Macs));
  // Seconds that a call takes at least, per second.
  rate("of_limit",
       std::max(work.bytes / peaks.bytes,
                work.int8Macs / peaks.int8Macs + work.f32Macs / peaks.f32Macs));
}

void run(benchmark::State &state, const Peaks &peaks, const NamedCase &named) {
  static const WeightMemory weights = makeWeights(workingSet);
  std::unique_ptr<BenchCase> benchCase = named.make(weights);
  for (auto _ : state) {
    benchCase->next();
    benchCase->call();
  }
  report(state, peaks, benchCase->work());
}

/// A figure of the machine, or the end of the program.
f64 limitOf(runtime::Result<f64> measured) {
  if (measured)
    return *measured;
  std::fprintf(stderr, "kernels-bench: %s\n", measured.error().message.c_str());
  std::exit(1);
}

void addLayer(const BenchLayer &layer) {
  static const f64 bandwidth = limitOf(runtime::measureBandwidth(1));
  Peaks peaks = {bandwidth, limitOf(runtime::measureInt8(1, layer.name)),
                 limitOf(runtime::measureF32(1, layer.name))};
  for (const NamedCase &named : casesOf(layer))
    benchmark::RegisterBenchmark(named.name.c_str(), run, peaks, named);
}

/// The CPU's name and feature flags belong to every figure.
void logCpu() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name"))
      benchmark::AddCustomContext("cpu", line.substr(line.find(':') + 2));
    if (line.starts_with("flags")) {
      std::string found;
      for (const char *flag :
           {"avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16"})
        if (line.find(std::string(" ") + flag + " ") != std::string::npos)
          found += std::string(found.empty() ? "" : " ") + flag;
      benchmark::AddCustomContext("cpu features", found);
      return;
    }
  }
}

} // namespace
} // namespace lathe::bench

int main(int argc, char **argv) {
  using namespace lathe::bench;
  benchmark::Initialize(&argc, argv);
  logCpu();
  __builtin_cpu_init();
  addLayer(generic::layer);
  if (__builtin_cpu_supports("avx2"))
    addLayer(avx2::layer);
  if (__builtin_cpu_supports("avx512vnni"))
    addLayer(avx512::layer);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

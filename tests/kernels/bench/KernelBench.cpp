// Each skeleton on one thread, for every ISA layer that this CPU runs: bytes
// and operations per second and the share of the limit, which is bandwidth or
// the peak of the layer's instructions, measured before, whichever binds. At
// few rows the weights of many layers in turn make the caches useless, as in
// decoding; from 64 rows on it does not matter. Not run by ctest.

#include "kernels/formats/Layout.h"
#include "runtime/device/MachineLimits.h"
#include "tests/kernels/bench/BenchLayer.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <sys/mman.h>
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

namespace {

/// Bytes of weights that one measurement goes through in turn.
constexpr u64 workingSet = u64(256) << 20;

/// Huge-page memory of pseudo-random bytes without NaN patterns; the values do
/// not matter to the speed of anything measured.
u8 *weightMemory() {
  static u8 *memory = [] {
    void *map = mmap(nullptr, workingSet, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(map, workingSet, MADV_HUGEPAGE);
    u8 *bytes = static_cast<u8 *>(map);
    std::mt19937_64 random(1);
    for (u64 i = 0; i < workingSet; i += 8) {
      u64 word = random() & 0x3333333333333333;
      std::memcpy(bytes + i, &word, 8);
    }
    return bytes;
  }();
  return memory;
}

/// What a layer can do on one thread, per second.
struct Peaks {
  f64 bytes, int8Macs, f32Macs;
};

/// What one call moves and multiplies.
struct Work {
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

void runGemm(benchmark::State &state, const Peaks &peaks,
             const GemmBench &bench) {
  u32 rows = u32(state.range(0));
  const u8 *weights = weightMemory();
  u64 bytes = *kernels::packedBytes(bench.format, u64(bench.n), u64(bench.k));
  u64 copies = workingSet / bytes, at = 0;
  std::vector<ActivationBlock> blocks(rows * u64(bench.k) / 32);
  for (u64 i = 0; i < blocks.size(); ++i) {
    blocks[i].d = 0.01f;
    for (int j = 0; j < 32; ++j) {
      blocks[i].q[j] = i8(j * 7 % 255 - 127);
      blocks[i].laneSum[j / 16][j % 4 / 2] += blocks[i].q[j];
    }
  }
  std::vector<f32> floats(rows * u64(bench.k), 0.5f);
  std::vector<f32> out(rows * u64(bench.n));
  bool floatInput = kernels::isFloatFormat(bench.format);
  for (auto _ : state) {
    const void *operands[] = {floatInput ? static_cast<void *>(floats.data())
                                         : blocks.data(),
                              weights + at * bytes, out.data()};
    bench.function(nullptr, operands, rows, 0, 1);
    at = at + 1 < copies ? at + 1 : 0;
  }
  f64 macs = f64(rows) * f64(bench.n) * f64(bench.k);
  report(state, peaks,
         floatInput ? Work{f64(bytes), 0, macs} : Work{f64(bytes), macs, 0});
}

/// `rows` rows at the end of a sequence of `depth` + rows keys, layer after
/// layer, so that at few rows K and V come from memory as in decoding.
void runAttention(benchmark::State &state, const Peaks &peaks,
                  const AttentionBench &bench) {
  u32 rows = u32(state.range(0)), depth = u32(state.range(1));
  u32 total = depth + rows, pages = (total + pageTokens - 1) / pageTokens;
  constexpr u64 layers = 30;
  u64 partBytes = u64(bench.kvHeads * bench.headDim) * pageTokens * 2;
  std::vector<u16> pool(layers * partBytes * (pages + 1), 0x2e66);
  std::vector<u32> table(pages);
  for (u32 i = 0; i < pages; ++i)
    table[i] = i + 1;
  KvGroupArgs group = {reinterpret_cast<u8 *>(pool.data()), table.data(), pages,
                       pages + 1};
  std::vector<i32> positions(rows);
  for (u32 i = 0; i < rows; ++i)
    positions[i] = i32(depth + i);
  std::vector<AttentionWork> items;
  constexpr u32 tile = 16;
  for (u32 at = 0; at < rows; at += tile) {
    u32 count = std::min(tile, rows - at);
    items.push_back(
        {0, at, count, 0, (depth + at + count + 127) / 128, ~0u, 0, 0});
  }
  AttentionWorkList list = {items.data(), nullptr, u32(items.size()), 0};
  StepArgs args = {};
  args.groups = &group;
  args.positions = positions.data();
  args.attentionWork = &list;
  u64 width = u64(bench.heads * bench.headDim);
  std::vector<f32> q(rows * width, 0.1f);
  std::vector<ActivationBlock> out(rows * width / 32);
  u64 layer = 0, poolPart = partBytes * (pages + 1);
  for (auto _ : state) {
    const u8 *keys = group.pool + 2 * layer * poolPart;
    const void *operands[] = {q.data(), keys, keys + poolPart, nullptr,
                              out.data()};
    bench.function(&args, operands, list.count, 0, 1);
    layer = layer + 1 < layers ? layer + 1 : 0;
  }
  f64 pairs = 0;
  for (u32 i = 0; i < rows; ++i)
    pairs += depth + i + 1;
  f64 keyBytes = 4.0 * f64(bench.kvHeads * bench.headDim);
  report(state, peaks, {total * keyBytes, 0, 2 * pairs * f64(width)});
}

/// The activations and the cache stay in L2: what is measured is the work.
void runRope(benchmark::State &state, const Peaks &peaks,
             const RopeBench &bench) {
  u32 rows = u32(state.range(0)), pages = (rows + pageTokens - 1) / pageTokens;
  u64 q = u64(bench.heads * bench.headDim),
      kv = u64(bench.kvHeads * bench.headDim);
  std::vector<u16> pool(2 * kv * pageTokens * (pages + 1));
  std::vector<u32> table(pages), sequence(rows, 0);
  for (u32 i = 0; i < pages; ++i)
    table[i] = i + 1;
  std::vector<i32> positions(rows);
  for (u32 i = 0; i < rows; ++i)
    positions[i] = i32(i);
  KvGroupArgs group = {reinterpret_cast<u8 *>(pool.data()), table.data(), pages,
                       pages + 1};
  StepArgs args = {};
  args.groups = &group;
  args.positions = positions.data();
  args.rowSequence = sequence.data();
  std::vector<f32> queries(rows * q, 0.1f), out(rows * q),
      keys(rows * kv, 0.1f), angles(rows * u64(bench.pairs) * 2, 0.5f);
  const void *operands[] = {
      queries.data(), keys.data(),
      keys.data(),    angles.data(),
      group.pool,     group.pool + kv * pageTokens * 2 * (pages + 1),
      out.data()};
  for (auto _ : state)
    bench.function(&args, operands, rows, 0, 1);
  report(state, peaks, {f64(rows) * f64(8 * q + 12 * kv), 0, 0});
}

void runRowwise(benchmark::State &state, const Peaks &peaks,
                const RowwiseBench &bench) {
  u32 rows = u32(state.range(0));
  u64 k = u64(bench.k);
  std::vector<f32> x(rows * k, 0.5f), weight(k, 1);
  std::vector<ActivationBlock> out(rows * k / 32);
  const void *operands[] = {x.data(), weight.data(), out.data()};
  for (auto _ : state)
    bench.function(nullptr, operands, rows, 0, 1);
  report(state, peaks,
         {f64(rows) * f64(4 * k + k / 32 * sizeof(ActivationBlock)), 0, 0});
}

void runEmbed(benchmark::State &state, const Peaks &peaks,
              const EmbedBench &bench) {
  u32 rows = u32(state.range(0));
  u64 k = u64(bench.k);
  std::mt19937 random(1);
  std::vector<i32> tokens(rows);
  std::vector<f32> out(rows * k);
  StepArgs args = {};
  args.tokens = tokens.data();
  const void *operands[] = {weightMemory(), out.data()};
  for (auto _ : state) {
    for (i32 &token : tokens)
      token = i32(random() % u32(bench.vocab));
    bench.function(&args, operands, rows, 0, 1);
  }
  u64 rowBytes = *kernels::packedBytes(bench.format, 16, k) / 16;
  report(state, peaks, {f64(rows) * f64(rowBytes + 4 * k), 0, 0});
}

/// The bytes of the coarse head; what must be computed exactly comes on top.
void runPick(benchmark::State &state, const Peaks &peaks,
             const PickBench &bench) {
  u64 n = u64(bench.n), k = u64(bench.k);
  u64 headBytes = *kernels::packedBytes(kernels::Format::Q8_0, n, k);
  u64 coarseBytes = *kernels::packedBytes(kernels::Format::Q5_0, n, k);
  std::vector<ActivationBlock> x(k / 32);
  for (ActivationBlock &block : x) {
    block = {};
    block.d = 0.01f;
    block.q[0] = 100;
    block.laneSum[0][0] = 100;
  }
  std::vector<f32> errors(n, 1e-6f), bounds(n);
  std::vector<u8> rowState(pickStateBytes);
  PickArgs how;
  PickResult picked;
  StepArgs args = {};
  args.headRows = 1;
  args.pickArgs = &how;
  StepBarrier barrier = {};
  args.barrier = &barrier;
  const void *operands[] = {
      x.data(),      weightMemory(), weightMemory() + headBytes,
      errors.data(), bounds.data(),  rowState.data(),
      &picked};
  for (auto _ : state)
    bench.function(&args, operands, 1, 0, 1);
  report(state, peaks, {f64(coarseBytes), f64(n * k), 0});
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
  for (u32 i = 0; i < layer.gemmCount; ++i) {
    const GemmBench &gemm = layer.gemms[i];
    std::string name = std::string(layer.name) + "/gemm/" + gemm.name + "/" +
                       std::to_string(gemm.n) + "x" + std::to_string(gemm.k);
    benchmark::RegisterBenchmark(name.c_str(), runGemm, peaks, gemm)
        ->ArgName("M")
        ->Arg(1)
        ->Arg(2)
        ->Arg(4)
        ->Arg(8)
        ->Arg(64)
        ->Arg(512);
  }
  auto add = [&](const char *skeleton, auto run, const auto &bench) {
    std::string name = std::string(layer.name) + "/" + skeleton;
    return benchmark::RegisterBenchmark(name.c_str(), run, peaks, bench);
  };
  add("attention", runAttention, layer.attention)
      ->ArgNames({"rows", "depth"})
      ->Args({1, 128})
      ->Args({1, 512})
      ->Args({1, 4096})
      ->Args({512, 0})
      ->Args({512, 3584});
  add("rope_append", runRope, layer.rope)->ArgName("rows")->Arg(1)->Arg(64);
  add("rowwise", runRowwise, layer.rowwise)->ArgName("rows")->Arg(1)->Arg(64);
  add("embed", runEmbed, layer.embed)->ArgName("rows")->Arg(1)->Arg(64);
  add("pick", runPick, layer.pick);
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

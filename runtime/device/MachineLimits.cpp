#include "runtime/device/MachineLimits.h"

#include "runtime/device/Memory.h"
#include "runtime/device/ThreadTeam.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <unistd.h>

using namespace lathe;
using namespace lathe::runtime;

namespace {

using Clock = std::chrono::steady_clock;

using Words __attribute__((vector_size(16))) = u64;
using Wide __attribute__((vector_size(64))) = i8;
using WideSums __attribute__((vector_size(64))) = i32;
using Bytes __attribute__((vector_size(32))) = i8;
using Shorts __attribute__((vector_size(32))) = i16;

/// Keeps a value, and so what it was computed from.
template <typename T> void keep(const T &value) {
  asm volatile("" : : "m"(value) : "memory");
}

f64 secondsOf(ThreadTeam &team, auto &&work) {
  auto start = Clock::now();
  team.run(work);
  return std::chrono::duration<f64>(Clock::now() - start).count();
}

/// Reads [begin, begin + bytes) in `Streams` interleaved streams.
template <size_t Streams> void readAll(const u8 *begin, u64 bytes) {
  constexpr u64 line = 64;
  u64 stride = bytes / Streams / line * line;
  Words sums[4] = {};
  for (u64 at = 0; at < stride; at += line)
    for (size_t stream = 0; stream < Streams; ++stream) {
      auto *words =
          reinterpret_cast<const Words *>(begin + stream * stride + at);
      for (size_t i = 0; i < 4; ++i)
        sums[i] ^= words[i];
    }
  keep(sums);
}

/// Accumulators that hide the latency of one instruction.
constexpr size_t chains = 12;
constexpr u64 loopRounds = 2'000'000;

/// One thread's loop; returns multiply-adds done.
using Loop = u64 (*)(u64 rounds);

__attribute__((target("avx512f,avx512vnni"))) u64 vnniLoop(u64 rounds) {
  WideSums sums[chains] = {};
  WideSums a{}, b{};
  asm volatile("" : "+v"(a), "+v"(b));
  for (u64 round = 0; round < rounds; ++round) {
    for (WideSums &sum : sums) {
      sum = reinterpret_cast<WideSums>(
          __builtin_ia32_vpdpbusd512(reinterpret_cast<WideSums>(sum), a, b));
      asm volatile("" : "+v"(sum));
    }
  }
  keep(sums);
  return rounds * chains * 64;
}

__attribute__((target("avx2"))) u64 avx2Loop(u64 rounds) {
  Shorts sums[chains] = {};
  Bytes a{}, b{};
  asm volatile("" : "+x"(a), "+x"(b));
  for (u64 round = 0; round < rounds; ++round)
    for (Shorts &sum : sums) {
      auto product = __builtin_ia32_pmaddubsw256(a, b);
      asm volatile("" : "+x"(product));
      sum += reinterpret_cast<Shorts>(product);
    }
  keep(sums);
  return rounds * chains * 32;
}

/// What plain x86-64 has: pmaddwd on values widened before.
u64 plainLoop(u64 rounds) {
  using Half __attribute__((vector_size(16))) = i16;
  using Sums __attribute__((vector_size(16))) = i32;
  Sums sums[chains] = {};
  Half a{}, b{};
  asm volatile("" : "+x"(a), "+x"(b));
  for (u64 round = 0; round < rounds; ++round)
    for (Sums &sum : sums) {
      auto product = __builtin_ia32_pmaddwd128(a, b);
      asm volatile("" : "+x"(product));
      sum += reinterpret_cast<Sums>(product);
    }
  keep(sums);
  return rounds * chains * 8;
}

Loop int8LoopFor(std::string_view isa) {
  if (isa.starts_with("avx512"))
    return vnniLoop;
  return isa == "avx2" ? avx2Loop : plainLoop;
}

/// Products of 1 by 1, added up: no denormals, no rounding. The compiler fuses
/// nothing by itself (-ffp-contract=off).
__attribute__((target("avx512f"))) u64 fma512Loop(u64 rounds) {
  using Floats __attribute__((vector_size(64))) = f32;
  Floats sums[chains] = {}, one = Floats{} + 1;
  asm volatile("" : "+v"(one));
  for (u64 round = 0; round < rounds; ++round)
    for (Floats &sum : sums) {
      sum = __builtin_elementwise_fma(one, one, sum);
      asm volatile("" : "+v"(sum));
    }
  keep(sums);
  return rounds * chains * 16;
}

__attribute__((target("avx2,fma"))) u64 fma256Loop(u64 rounds) {
  using Floats __attribute__((vector_size(32))) = f32;
  Floats sums[chains] = {}, one = Floats{} + 1;
  asm volatile("" : "+x"(one));
  for (u64 round = 0; round < rounds; ++round)
    for (Floats &sum : sums) {
      sum = __builtin_elementwise_fma(one, one, sum);
      asm volatile("" : "+x"(sum));
    }
  keep(sums);
  return rounds * chains * 8;
}

u64 plainF32Loop(u64 rounds) {
  using Floats __attribute__((vector_size(16))) = f32;
  Floats sums[chains] = {}, one = Floats{} + 1;
  asm volatile("" : "+x"(one));
  for (u64 round = 0; round < rounds; ++round)
    for (Floats &sum : sums) {
      Floats product = one * one;
      asm volatile("" : "+x"(product));
      sum += product;
      asm volatile("" : "+x"(sum));
    }
  keep(sums);
  return rounds * chains * 4;
}

/// Zeros: how fast it is does not depend on the values.
__attribute__((target("avx512f,avx512bf16"))) u64 bf16Loop(u64 rounds) {
  using Floats __attribute__((vector_size(64))) = f32;
  using Brains __attribute__((vector_size(64))) = __bf16;
  Floats sums[chains] = {};
  Brains zeros = {};
  asm volatile("" : "+v"(zeros));
  for (u64 round = 0; round < rounds; ++round)
    for (Floats &sum : sums) {
      sum = __builtin_ia32_dpbf16ps_512(sum, zeros, zeros);
      asm volatile("" : "+v"(sum));
    }
  keep(sums);
  return rounds * chains * 32;
}

Loop f32LoopFor(std::string_view isa) {
  if (isa.starts_with("avx512"))
    return fma512Loop;
  return isa == "avx2" ? fma256Loop : plainF32Loop;
}

/// The best of three runs of a loop in all threads.
Result<f64> measureLoop(u32 threads, Loop loop) {
  auto team = ThreadTeam::create({.threads = threads});
  if (!team)
    return failFrom(team);
  f64 best = 0;
  for (int turn = 0; turn < 3; ++turn) {
    std::atomic<u64> done{0};
    f64 seconds =
        secondsOf(**team, [&](u32, u32) { done += loop(loopRounds); });
    best = std::max(best, f64(done) / seconds);
  }
  return best;
}

u64 bufferBytes() {
  constexpr u64 least = u64(256) << 20;
  constexpr u64 most = u64(2) << 30;
  long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return std::clamp(u64(std::max(cache, 0L)) * 4, least, most);
}

} // namespace

Result<f64> runtime::measureBandwidth(u32 threads) {
  auto team = ThreadTeam::create({.threads = threads});
  if (!team)
    return failFrom(team);
  u64 bytes = bufferBytes();
  auto checked = MemoryBudget::detect().check(
      bytes, "the bandwidth measurement", "free some");
  if (!checked)
    return failFrom(checked);
  auto buffer = MemoryRegion::map(bytes, "the bandwidth measurement");
  if (!buffer)
    return failFrom(buffer);
  u64 share = bytes / threads / 4096 * 4096;
  auto partOf = [&](u32 thread) { return buffer->data() + thread * share; };
  (*team)->run([&](u32 thread, u32) { std::memset(partOf(thread), 1, share); });
  using Reader = void (*)(const u8 *, u64);
  constexpr std::array<Reader, 3> readers = {readAll<1>, readAll<2>,
                                             readAll<4>};
  f64 best = 0;
  for (Reader reader : readers)
    for (int turn = 0; turn < 3; ++turn) {
      f64 seconds = secondsOf(
          **team, [&](u32 thread, u32) { reader(partOf(thread), share); });
      best = std::max(best, f64(share * threads) / seconds);
    }
  return best;
}

Result<f64> runtime::measureInt8(u32 threads, std::string_view isa) {
  return measureLoop(threads, int8LoopFor(isa));
}

Result<f64> runtime::measureF32(u32 threads, std::string_view isa) {
  return measureLoop(threads, f32LoopFor(isa));
}

Result<f64> runtime::measureBf16(u32 threads, std::string_view isa) {
  return measureLoop(threads, isa == "avx512bf16" ? bf16Loop : f32LoopFor(isa));
}

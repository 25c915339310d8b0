// The barrier under stress, and StepScope.

#include "tests/kernels/cpu/Layers.h"

#include <atomic>
#include <chrono>

using namespace lathe;
using namespace lathe::tests;

namespace {

/// `threads` threads pass `rounds` barriers; a plain counter that each round's
/// owner writes shows every write to everybody.
void stress(const Layer &layer, u32 threads, u32 rounds, u32 spinLimit,
            u32 sleepEvery) {
  StepBarrier barrier = {};
  StepArgs args = {};
  args.barrier = &barrier;
  args.spinLimit = spinLimit;
  u64 shared = 0;
  std::atomic<u32> wrong = 0;
  std::vector<std::thread> team;
  for (u32 thread = 0; thread < threads; ++thread)
    team.emplace_back([&, thread] {
      for (u32 round = 0; round < rounds; ++round) {
        if (round % threads == thread) {
          if (sleepEvery && round % sleepEvery == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(200));
          shared = round + 1;
        }
        layer.barrier(&args, threads);
        if (shared != round + 1)
          wrong.fetch_add(1);
        layer.barrier(&args, threads);
      }
    });
  for (std::thread &thread : team)
    thread.join();
  EXPECT_EQ(wrong.load(), 0u) << layer.name;
  EXPECT_EQ(barrier.arrived, 0u);
  EXPECT_EQ(barrier.sleepers, 0u);
  EXPECT_EQ(barrier.generation, 2 * rounds);
}

TEST(Barrier, HoldsWhetherThreadsSpinOrSleep) {
  for (const Layer *layer : layers()) {
    stress(*layer, 2, 5000, 1000, 0);
    stress(*layer, 4, 500, 0, 0);
    stress(*layer, 5, 200, 20, 7);
  }
}

TEST(Barrier, GenerationMayWrapAround) {
  StepBarrier barrier = {};
  barrier.generation = ~0u - 1;
  StepArgs args = {};
  args.barrier = &barrier;
  args.spinLimit = 10;
  std::vector<std::thread> team;
  for (u32 thread = 0; thread < 3; ++thread)
    team.emplace_back([&] {
      for (u32 round = 0; round < 4; ++round)
        layers()[0]->barrier(&args, 3);
    });
  for (std::thread &thread : team)
    thread.join();
  EXPECT_EQ(barrier.generation, 2u);
}

TEST(Barrier, AloneTouchesNothing) {
  StepArgs args = {};
  layers()[0]->barrier(&args, 1);
}

TEST(StepScope, SetsAndRestoresMxcsr) {
  u32 before = __builtin_ia32_stmxcsr();
  // Round down, flush to zero, denormals are zero.
  __builtin_ia32_ldmxcsr(0x1f80 | 0x2000 | 0x8000 | 0x0040);
  for (const Layer *layer : layers()) {
    u32 inside = 0, after = 0;
    layer->stepScope(&inside, &after);
    EXPECT_EQ(inside & ~0x3fu, 0x1f80u) << layer->name;
    EXPECT_EQ(after & ~0x3fu, 0xbfc0u & ~0x3fu) << layer->name;
  }
  __builtin_ia32_ldmxcsr(before);
}

} // namespace

#include "runtime/device/ThreadTeam.h"

#include <chrono>
#include <csignal>
#include <ctime>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

using namespace lathe;
using namespace lathe::runtime;

namespace {

std::unique_ptr<ThreadTeam> makeTeam(u32 threads, bool pin = false) {
  auto team = ThreadTeam::create({.threads = threads, .pin = pin});
  EXPECT_TRUE(team.has_value()) << team.error().message;
  return std::move(*team);
}

double cpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

TEST(ThreadTeam, EveryThreadRunsEachTaskOnce) {
  for (u32 threads : {1u, 2u, 3u, 8u}) {
    auto team = makeTeam(threads);
    EXPECT_EQ(team->threads(), threads);
    std::vector<u32> counts(threads); // plain: run() must order the accesses
    for (u32 round = 1; round <= 3000; ++round) {
      team->run([&](u32 thread, u32 n) {
        EXPECT_EQ(n, threads);
        ++counts[thread];
      });
      for (u32 count : counts)
        ASSERT_EQ(count, round);
    }
  }
}

TEST(ThreadTeam, CallerIsThreadZero) {
  auto team = makeTeam(3);
  auto self = std::this_thread::get_id();
  std::vector<std::thread::id> ids(3);
  team->run([&](u32 thread, u32) { ids[thread] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], self);
  EXPECT_NE(ids[1], self);
  EXPECT_NE(ids[1], ids[2]);
}

// Long pauses let the workers fall asleep; slow ones let the caller sleep.
TEST(ThreadTeam, WakesAfterSleeping) {
  auto team = makeTeam(3);
  std::vector<u32> counts(3);
  for (u32 round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    team->run([&](u32 thread, u32) {
      if (thread == 2)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ++counts[thread];
    });
  }
  EXPECT_THAT(counts, testing::Each(20u));
}

// B49: no busy spinning between requests.
TEST(ThreadTeam, IdleTeamUsesNoCpu) {
  auto team = makeTeam(4);
  team->run([](u32, u32) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  double before = cpuSeconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpuSeconds() - before, 0.003);
}

TEST(ThreadTeam, StartsAndStopsWithoutRunning) {
  for (int i = 0; i < 50; ++i)
    makeTeam(4);
}

TEST(ThreadTeam, PinnedTeamRuns) {
  auto team = makeTeam(5, true);
  std::vector<u32> counts(5);
  team->run([&](u32 thread, u32) { ++counts[thread]; });
  EXPECT_THAT(counts, testing::Each(1u));
}

TEST(ThreadTeam, WorkersBlockSignals) {
  auto team = makeTeam(2);
  bool blocked = false;
  team->run([&](u32 thread, u32) {
    if (thread != 1)
      return;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGINT);
  });
  EXPECT_TRUE(blocked);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_FALSE(sigismember(&mask, SIGTERM));
}

TEST(ThreadTeam, StackIsUsable) {
  auto team =
      ThreadTeam::create({.threads = 2, .stackBytes = u64(4) << 20}).value();
  team->run([](u32, u32) {
    volatile u8 big[3 << 20];
    big[0] = 1;
    big[sizeof big - 1] = 2;
    EXPECT_EQ(big[0] + big[sizeof big - 1], 3);
  });
}

TEST(ThreadTeam, BarrierStartsZeroed) {
  auto team = makeTeam(2);
  EXPECT_EQ(team->barrier()->arrived, 0u);
  EXPECT_EQ(team->barrier()->generation, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(team->barrier()) % 64, 0u);
}

TEST(ThreadTeam, RefusesSillyCounts) {
  for (u32 threads : {0u, ThreadTeam::maxThreads + 1}) {
    auto team = ThreadTeam::create({.threads = threads});
    ASSERT_FALSE(team.has_value());
    EXPECT_EQ(team.error().kind, ErrorKind::InvalidInput);
    EXPECT_THAT(team.error().message, testing::HasSubstr("--threads"));
  }
}

TEST(ThreadTeam, ImpossibleStackIsAnError) {
  auto team = ThreadTeam::create({.threads = 3, .stackBytes = u64(1) << 60});
  ASSERT_FALSE(team.has_value());
  EXPECT_EQ(team.error().kind, ErrorKind::Exhausted);
  EXPECT_THAT(team.error().message, testing::HasSubstr("thread 2 of 3"));
}

TEST(ThreadTeam, SpinLimitIsAboutTwentyMicroseconds) {
  u32 limit = ThreadTeam::spinLimit();
  EXPECT_GE(limit, 50u);
  EXPECT_LE(limit, 20000u);
  double best = 1;
  for (int attempt = 0; attempt < 20; ++attempt) {
    auto start = std::chrono::steady_clock::now();
    for (u32 i = 0; i < limit; ++i)
      __builtin_ia32_pause();
    std::chrono::duration<double> t = std::chrono::steady_clock::now() - start;
    best = std::min(best, t.count());
  }
  EXPECT_LT(best, 60e-6);
}

} // namespace

#include "runtime/device/Memory.h"
#include "tests/unit/support/TempDir.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::runtime;

namespace {

class MemoryBudgetTest : public testing::Test {
protected:
  void put(const std::string &path, const std::string &text) {
    std::filesystem::path full = dir.path() + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  MemoryBudget detect(u64 addressSpaceLeft = ~u64(0)) {
    return MemoryBudget::detectAt(dir.path(), addressSpaceLeft);
  }

  tests::TempDir dir;
};

TEST_F(MemoryBudgetTest, NothingKnownMeansNoLimit) {
  EXPECT_EQ(detect().available, ~u64(0));
}

TEST_F(MemoryBudgetTest, FreeMemory) {
  put("/proc/meminfo", "MemTotal: 9000 kB\nMemFree: 1 kB\n"
                       "MemAvailable:    5000 kB\n");
  EXPECT_EQ(detect().available, u64(5000) * 1024);
  EXPECT_EQ(detect().limitedBy, "free memory");
}

TEST_F(MemoryBudgetTest, CgroupV2CountsTheFileCacheAsFree) {
  put("/proc/meminfo", "MemAvailable: 5000000 kB\n");
  put("/proc/self/cgroup", "0::/box\n");
  put("/proc/self/mountinfo",
      "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  put("/sys/fs/cgroup/box/memory.max", "max\n");
  EXPECT_EQ(detect().limitedBy, "free memory");
  put("/sys/fs/cgroup/box/memory.max", "1000000\n");
  put("/sys/fs/cgroup/box/memory.current", "700000\n");
  put("/sys/fs/cgroup/box/memory.stat",
      "anon 400000\ninactive_file 200000\nactive_file 100000\n");
  EXPECT_EQ(detect().available, 600000u);
  EXPECT_EQ(detect().limitedBy, "cgroup memory limit");
  put("/sys/fs/cgroup/memory.max", "1200000\n"); // a parent, fuller
  put("/sys/fs/cgroup/memory.current", "1150000\n");
  EXPECT_EQ(detect().available, 50000u);
  put("/sys/fs/cgroup/memory.current", "1500000\n");
  EXPECT_EQ(detect().available, 0u);
}

TEST_F(MemoryBudgetTest, CgroupV1) {
  put("/proc/self/cgroup", "4:memory:/a\n");
  put("/proc/self/mountinfo",
      "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n");
  put("/cg/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  put("/cg/memory/a/memory.usage_in_bytes", "1000\n");
  EXPECT_GT(detect().available, u64(1) << 60);
  put("/cg/memory/a/memory.limit_in_bytes", "4000\n");
  EXPECT_EQ(detect().available, 3000u);
}

TEST_F(MemoryBudgetTest, AddressSpace) {
  put("/proc/meminfo", "MemAvailable: 5000 kB\n");
  EXPECT_EQ(detect(4096).available, 4096u);
  EXPECT_EQ(detect(4096).limitedBy, "ulimit -v");
}

// B50: needed and available bytes and the flag to lower.
TEST_F(MemoryBudgetTest, ErrorSaysNeededAvailableAndFlag) {
  MemoryBudget budget{512 << 20, "cgroup memory limit"};
  EXPECT_TRUE(budget.check(512 << 20, "the KV cache", "").has_value());
  auto result = budget.check(u64(100) << 30, "the KV cache", "lower --context");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::Exhausted);
  EXPECT_EQ(result.error().message,
            "the KV cache needs 100.0 GiB (107374182400 bytes), but only "
            "512.0 MiB (536870912 bytes, cgroup memory limit) are available; "
            "lower --context");
}

TEST(Memory, FormatsBytes) {
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(1023), "1023 B");
  EXPECT_EQ(formatBytes(1536), "1.5 KiB");
  EXPECT_EQ(formatBytes(~u64(0)), "16.0 EiB");
}

TEST(Memory, RegionIsZeroedAndOwned) {
  auto region = MemoryRegion::map(1 << 20, "a test").value();
  ASSERT_EQ(region.size(), u64(1) << 20);
  for (u64 i = 0; i < region.size(); i += 4096)
    EXPECT_EQ(region.data()[i], 0);
  u8 *address = region.data();
  MemoryRegion moved = std::move(region);
  EXPECT_EQ(moved.data(), address);
  EXPECT_EQ(region.data(), nullptr);
  EXPECT_EQ(MemoryRegion::map(0, "a test").value().data(), nullptr);
}

TEST(Memory, TooLargeRegionIsAnError) {
  for (u64 bytes : {u64(1) << 50, ~u64(0)}) {
    auto region = MemoryRegion::map(bytes, "the arena");
    ASSERT_FALSE(region.has_value());
    EXPECT_EQ(region.error().kind, ErrorKind::Exhausted);
    EXPECT_THAT(region.error().message, testing::HasSubstr("the arena"));
  }
}

TEST(Memory, ThisMachineHasSome) {
  EXPECT_GT(MemoryBudget::detect().available, u64(1) << 20);
}

} // namespace

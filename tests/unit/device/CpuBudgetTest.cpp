#include "runtime/device/CpuBudget.h"
#include "tests/unit/support/TempDir.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::runtime;

namespace {

/// A fake file system root with one process's cgroup files.
class CpuBudgetTest : public testing::Test {
protected:
  void put(const std::string &path, const std::string &text) {
    std::filesystem::path full = root() + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  std::string root() { return dir.path(); }

  /// The process is in `cgroup` of a v2 hierarchy whose mount shows `shown`.
  void useV2(const std::string &cgroup, const std::string &shown = "/") {
    put("/proc/self/cgroup", "0::" + cgroup + "\n");
    put("/proc/self/mountinfo",
        "22 27 0:21 / /proc rw - proc proc rw\n"
        "41 31 0:38 " +
            shown +
            " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 "
            "rw,nsdelegate\n");
  }

  tests::TempDir dir;
};

TEST_F(CpuBudgetTest, NoFilesMeansNoQuota) {
  CpuBudget b = CpuBudget::detectAt(root(), 8);
  EXPECT_EQ(b.threads, 8u);
  EXPECT_FALSE(b.quota.has_value());
  EXPECT_EQ(b.summary(), "8 threads (8 CPUs in the affinity mask)");
}

TEST_F(CpuBudgetTest, V2Quota) {
  useV2("/");
  put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  CpuBudget b = CpuBudget::detectAt(root(), 8);
  EXPECT_EQ(b.threads, 4u);
  EXPECT_EQ(b.summary(),
            "4 threads (8 CPUs in the affinity mask, cgroup quota 4.00)");
  EXPECT_EQ(CpuBudget::detectAt(root(), 2).threads, 2u); // taskset is tighter
}

TEST_F(CpuBudgetTest, QuotaIsRoundedDownToAtLeastOne) {
  useV2("/");
  put("/sys/fs/cgroup/cpu.max", "765000 100000\n");
  EXPECT_EQ(CpuBudget::detectAt(root(), 64).threads, 7u);
  put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(CpuBudget::detectAt(root(), 64).threads, 1u);
  put("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(CpuBudget::detectAt(root(), 64).threads, 64u);
  put("/sys/fs/cgroup/cpu.max", "rubbish\n");
  EXPECT_EQ(CpuBudget::detectAt(root(), 64).threads, 64u);
  put("/sys/fs/cgroup/cpu.max", "100000 0\n");
  EXPECT_EQ(CpuBudget::detectAt(root(), 64).threads, 64u);
}

TEST_F(CpuBudgetTest, V2LimitOfAParentCounts) {
  useV2("/pod/box");
  put("/sys/fs/cgroup/pod/cpu.max", "300000 100000\n");
  put("/sys/fs/cgroup/pod/box/cpu.max", "max 100000\n");
  EXPECT_EQ(CpuBudget::detectAt(root(), 8).threads, 3u);
  put("/sys/fs/cgroup/pod/box/cpu.max", "200000 100000\n");
  EXPECT_EQ(CpuBudget::detectAt(root(), 8).threads, 2u);
}

// Docker without a cgroup namespace: the mount shows the container's cgroup.
TEST_F(CpuBudgetTest, MountShowsPartOfTheHierarchy) {
  useV2("/docker/abc/inner", "/docker/abc");
  put("/sys/fs/cgroup/cpu.max", "250000 100000\n");
  put("/sys/fs/cgroup/inner/cpu.max", "max 100000\n");
  EXPECT_EQ(CpuBudget::detectAt(root(), 8).threads, 2u);
}

TEST_F(CpuBudgetTest, OutsideOfTheCgroupNamespace) {
  useV2("/../../other");
  put("/sys/fs/cgroup/cpu.max", "500000 100000\n");
  EXPECT_EQ(CpuBudget::detectAt(root(), 8).threads, 5u);
}

TEST_F(CpuBudgetTest, V1QuotaAndParents) {
  put("/proc/self/cgroup", "5:cpuset:/x\n3:cpu,cpuacct:/a/b\n0::/\n");
  put("/proc/self/mountinfo",
      "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
      "rw,cpu,cpuacct\n"
      "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n");
  std::string base = "/sys/fs/cgroup/cpu,cpuacct";
  put(base + "/a/b/cpu.cfs_quota_us", "-1\n");
  put(base + "/a/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CpuBudget::detectAt(root(), 8).threads, 8u);
  put(base + "/a/cpu.cfs_quota_us", "150000\n");
  put(base + "/a/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(CpuBudget::detectAt(root(), 8).threads, 3u);
}

TEST_F(CpuBudgetTest, MountPointsWithSpaces) {
  put("/proc/self/cgroup", "0::/\n");
  put("/proc/self/mountinfo",
      "41 31 0:38 / /my\\040cgroups rw - cgroup2 cgroup2 rw\n");
  put("/my cgroups/cpu.max", "200000 100000\n");
  EXPECT_EQ(CpuBudget::detectAt(root(), 8).threads, 2u);
}

TEST(CpuBudget, ThisMachineHasAtLeastOne) {
  CpuBudget b = CpuBudget::detect();
  EXPECT_GE(b.threads, 1u);
  EXPECT_LE(b.threads, b.affinity);
}

} // namespace

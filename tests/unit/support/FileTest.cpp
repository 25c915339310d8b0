#include "runtime/support/AtomicFile.h"
#include "runtime/support/MappedFile.h"
#include "tests/unit/support/TempDir.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace lathe::runtime;
using namespace lathe::tests;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

std::span<const uint8_t> bytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

TEST(MappedFile, ShowsTheFilesBytes) {
  TempDir dir;
  std::string path = dir.write("a", "hello");
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->size(), 5u);
  EXPECT_EQ(file->path(), path);
  const uint8_t *before = file->bytes().data();
  MappedFile moved = std::move(*file);
  EXPECT_EQ(moved.bytes().data(), before);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "hello", 5), 0);
  EXPECT_EQ(file->size(), 0u);
  // The old bytes outlive a replacement by rename.
  dir.write("b", "other");
  std::filesystem::rename(dir.path("b"), path);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "hello", 5), 0);
}

TEST(MappedFile, EmptyFileIsAnEmptySpan) {
  TempDir dir;
  auto file = MappedFile::open(dir.write("empty", ""));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->size(), 0u);
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFile, OtherThanRegularFilesAreRefusedByName) {
  TempDir dir;
  ASSERT_EQ(::mkfifo(dir.path("fifo").c_str(), 0600), 0);
  struct {
    std::string path;
    ErrorKind kind;
    const char *message;
  } cases[] = {
      {dir.path(), ErrorKind::InvalidInput, "is a directory"},
      {dir.path("fifo"), ErrorKind::InvalidInput, "is a FIFO"},
      {"/dev/null", ErrorKind::InvalidInput, "is a device"},
      {dir.path("missing"), ErrorKind::NotFound, "No such file"},
      {dir.write("f", "x") + "/g", ErrorKind::NotFound, "Not a directory"},
      {"", ErrorKind::InvalidInput, "not a file name"},
  };
  for (auto &c : cases) {
    auto file = MappedFile::open(c.path);
    ASSERT_FALSE(file) << c.path;
    EXPECT_EQ(file.error().kind, c.kind) << file.error().message;
    EXPECT_THAT(file.error().message, HasSubstr(c.message));
    EXPECT_THAT(file.error().message, HasSubstr(c.path));
  }
}

TEST(AtomicFile, TargetAppearsWholeAtCommit) {
  TempDir dir;
  std::string path = dir.write("out", "old");
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->append(bytesOf("????def")));
    ASSERT_TRUE(file->writeAt(0, bytesOf("abc-")));
    EXPECT_EQ(file->size(), 7u);
    ASSERT_TRUE(file->writeAt(8, bytesOf("z")));
    EXPECT_EQ(file->size(), 9u);
    EXPECT_EQ(readFile(path), "old");
    AtomicFile moved = std::move(*file);
    ASSERT_TRUE(moved.commit());
  }
  EXPECT_EQ(readFile(path), std::string("abc-def\0z", 9));
  EXPECT_THAT(dir.entries(), ElementsAre("out"));
}

TEST(AtomicFile, WithoutCommitNothingRemains) {
  TempDir dir;
  {
    auto file = AtomicFile::create(dir.path("out"));
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->append(bytesOf("abc")));
    EXPECT_EQ(dir.entries().size(), 1u);
    EXPECT_EQ(readFile(file->temporaryPath()), "abc");
  }
  EXPECT_THAT(dir.entries(), IsEmpty());
}

TEST(AtomicFile, PermissionsFollowTheUmask) {
  TempDir dir;
  mode_t old = ::umask(027);
  auto file = AtomicFile::create(dir.path("out"));
  ::umask(old);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->commit());
  struct stat status;
  ASSERT_EQ(::stat(dir.path("out").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(AtomicFile, SymbolicLinkKeepsPointingAtTheNewFile) {
  TempDir dir;
  dir.write("real", "old");
  ASSERT_EQ(::symlink("real", dir.path("link").c_str()), 0);
  auto file = AtomicFile::create(dir.path("link"));
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append(bytesOf("new")));
  ASSERT_TRUE(file->commit());
  EXPECT_TRUE(std::filesystem::is_symlink(dir.path("link")));
  EXPECT_EQ(readFile(dir.path("real")), "new");
}

TEST(AtomicFile, UnusableTargetsAreRefused) {
  TempDir dir;
  struct {
    std::string path;
    ErrorKind kind;
  } cases[] = {
      {dir.path(), ErrorKind::InvalidInput},
      {dir.path("x") + "/", ErrorKind::InvalidInput},
      {"/dev/null", ErrorKind::InvalidInput},
      {"", ErrorKind::InvalidInput},
      {dir.path("none/out"), ErrorKind::NotFound},
  };
  for (auto &c : cases) {
    auto file = AtomicFile::create(c.path);
    ASSERT_FALSE(file) << c.path;
    EXPECT_EQ(file.error().kind, c.kind) << file.error().message;
    EXPECT_THAT(file.error().message, HasSubstr(c.path));
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(AtomicFile, FailedWriteLeavesTheTargetAndNoTemporary) {
  TempDir dir;
  std::string path = dir.write("out", "old");
  // A file size limit stands in for a full disk.
  struct rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 4096;
  auto oldHandler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file);
    auto written = file->append(bytesOf(std::string(10000, 'x')));
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    ::signal(SIGXFSZ, oldHandler);
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().kind, ErrorKind::Exhausted);
    EXPECT_THAT(written.error().message, HasSubstr(path));
  }
  EXPECT_EQ(readFile(path), "old");
  EXPECT_THAT(dir.entries(), ElementsAre("out"));
}

TEST(AtomicFile, OffsetsBeyondAnyFileAreRefused) {
  TempDir dir;
  auto file = AtomicFile::create(dir.path("out"));
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->writeAt(UINT64_MAX, bytesOf("a")));
  EXPECT_FALSE(file->writeAt(uint64_t(1) << 63, bytesOf("a")));
}

} // namespace

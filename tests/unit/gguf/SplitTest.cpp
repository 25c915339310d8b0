// Models in several files (B12 d).
#include "tests/unit/gguf/GgufTest.h"

using namespace lathe::frontend;
using namespace lathe::tests;
using lathe::runtime::ErrorKind;
using testing::HasSubstr;

namespace {

class SplitTest : public GgufTest {
protected:
  static constexpr const char *names[3] = {"m-00001-of-00003.gguf",
                                           "m-00002-of-00003.gguf",
                                           "m-00003-of-00003.gguf"};

  static GgufWriter shard(uint16_t number, uint16_t count = 3,
                          int32_t tensors = 3) {
    GgufWriter writer;
    if (number == 0)
      writer.string("general.architecture", "llama");
    writer.u16("split.no", number)
        .u16("split.count", count)
        .i32("split.tensors.count", tensors);
    return writer;
  }
  static GgufWriter fullShard(uint16_t number) {
    GgufWriter writer = shard(number);
    writer.tensor("t" + std::to_string(number), {8}, ggmlF32,
                  GgufWriter::Bytes(32, static_cast<uint8_t>(number)));
    return writer;
  }
  void writeAll() {
    for (uint16_t i = 0; i < 3; ++i)
      dir.write(names[i], fullShard(i).bytes());
  }
  void expectFailure(const char *name, const char *text) {
    auto file = GgufFile::open(dir.path(name));
    ASSERT_FALSE(file) << text;
    EXPECT_THAT(file.error().message, HasSubstr(text));
    EXPECT_THAT(file.error().message, HasSubstr(dir.path("")));
  }
};

TEST_F(SplitTest, AnyShardOpensTheModel) {
  writeAll();
  for (const char *name : names) {
    auto file = GgufFile::open(dir.path(name));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->shardCount(), 3u);
    EXPECT_EQ(file->getString("general.architecture").value(), "llama");
    ASSERT_EQ(file->tensors().size(), 3u);
    for (uint32_t i = 0; i < 3; ++i) {
      const GgufTensor &tensor = file->tensors()[i];
      EXPECT_EQ(tensor.name, "t" + std::to_string(i));
      EXPECT_EQ(tensor.shard, i);
      EXPECT_EQ(tensor.data[0], i);
      EXPECT_EQ(file->shardPath(i), dir.path(names[i]));
      EXPECT_EQ(file->shardBytes(i).data() + tensor.offset, tensor.data.data());
    }
  }
}

TEST_F(SplitTest, AMissingShardIsNamed) {
  writeAll();
  std::filesystem::remove(dir.path(names[1]));
  expectFailure(names[0], "shard 2 of 3 is missing");
  expectFailure(names[2], names[1]);
}

TEST_F(SplitTest, ADamagedShardIsNamed) {
  writeAll();
  auto bytes = fullShard(1).bytes();
  bytes.pop_back();
  dir.write(names[1], bytes);
  expectFailure(names[0], names[1]);
  expectFailure(names[0], "'t1'");
}

TEST_F(SplitTest, ARenamedShardSaysWhichNameItNeeds) {
  dir.write("model.gguf", fullShard(1).bytes());
  expectFailure("model.gguf", "-00002-of-00003.gguf");
}

TEST_F(SplitTest, ShardsThatContradictTheirNamesAreRefused) {
  writeAll();
  dir.write(names[2], fullShard(1).bytes());
  expectFailure(names[0], "shard 2 of 3");
  GgufWriter alone;
  alone.tensor("t2", {8}, ggmlF32, zeros(32));
  dir.write(names[2], alone.bytes());
  expectFailure(names[0], names[2]);
}

TEST_F(SplitTest, JoinedWithCatIsRefused) {
  auto joined = fullShard(0).bytes();
  auto second = fullShard(1).bytes();
  joined.insert(joined.end(), second.begin(), second.end());
  dir.write("joined.gguf", joined);
  expectFailure("joined.gguf", "cat");
  // Also when the name fits and the others are there.
  writeAll();
  dir.write(names[0], joined);
  expectFailure(names[0], "joined with cat");
  // And for files that carry no split keys.
  GgufWriter plain;
  plain.tensor("a", {8}, ggmlF32, zeros(32));
  joined = plain.bytes();
  joined.insert(joined.end(), second.begin(), second.end());
  dir.write("joined.gguf", joined);
  expectFailure("joined.gguf", "another GGUF file starts");
}

TEST_F(SplitTest, TensorCountAndNamesAreCheckedOverAllShards) {
  writeAll();
  GgufWriter wrong = shard(0, 3, 4);
  wrong.tensor("t0", {8}, ggmlF32, zeros(32));
  dir.write(names[0], wrong.bytes());
  expectFailure(names[0], "hold 3 tensors");
  GgufWriter twice = shard(0);
  twice.tensor("t2", {8}, ggmlF32, zeros(32));
  dir.write(names[0], twice.bytes());
  expectFailure(names[0], "tensor 't2' is in shard 1 too");
}

TEST_F(SplitTest, WrongSplitKeysAreNamed) {
  struct {
    uint16_t number, count;
    const char *text;
  } cases[] = {
      {3, 3, "'split.no'"}, {1, 1, "'split.no'"}, {65535, 65535, "'split.no'"}};
  for (auto &c : cases)
    expectRefused(shard(c.number, c.count).bytes(), c.text);
  GgufWriter text;
  text.string("split.count", "3");
  expectRefused(text.bytes(), "'split.count'");
  // A count of 1, and of 0, is a whole model.
  for (uint16_t count : {0, 1})
    EXPECT_TRUE(open(shard(0, count, 0).bytes()));
}

} // namespace

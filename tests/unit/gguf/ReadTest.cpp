// Well-formed files are read as written.
#include "tests/unit/gguf/GgufTest.h"

#include <cstdlib>
#include <sys/stat.h>

using namespace lathe::frontend;
using namespace lathe::tests;
using lathe::kernels::Format;
using lathe::runtime::ErrorKind;
using testing::HasSubstr;

namespace {

using ReadTest = GgufTest;

TEST_F(ReadTest, TensorsAreDescribedAndLieWhereTheBytesAre) {
  for (uint32_t version : {2, 3}) {
    GgufWriter writer = smallModel();
    writer.version = version;
    auto file = open(writer.bytes());
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_EQ(file->tensors().size(), 3u);
    EXPECT_EQ(file->shardCount(), 1u);

    const GgufTensor &embed = file->tensors()[0];
    EXPECT_EQ(embed.name, "token_embd.weight");
    EXPECT_EQ(embed.rank, 2u);
    EXPECT_EQ(embed.dims, (std::array<uint64_t, 4>{3, 2, 1, 1}));
    EXPECT_EQ(embed.k(), 3u);
    EXPECT_EQ(embed.rows(), 2u);
    EXPECT_EQ(embed.format, Format::F32);
    EXPECT_EQ(embed.data.size(), 24u);
    float last;
    std::memcpy(&last, embed.data.data() + 20, 4);
    EXPECT_EQ(last, 5.0f);
    EXPECT_EQ(embed.data.data(),
              file->shardBytes(embed.shard).data() + embed.offset);
    EXPECT_GE(embed.offset, file->headerBytes(0).size());

    auto q = file->getTensor("blk.0.attn_q.weight");
    ASSERT_TRUE(q);
    EXPECT_EQ((*q)->format, Format::Q4_0);
    EXPECT_EQ((*q)->data.size(), 36u);
    EXPECT_EQ((*q)->offset % 32, 0u);
    EXPECT_EQ(file->findTensor("blk.0.é")->format, Format::Q6_K);
  }
}

// Seeds of the fuzz target, made by tests/fuzz/gguf/make_corpus.py.
TEST_F(ReadTest, FilesOfTheGgufPackage) {
  const char *source = std::getenv("LATHE_SOURCE_DIR");
  std::string corpus =
      std::string(source ? source : ".") + "/tests/fuzz/gguf/corpus/";
  auto model = GgufFile::open(corpus + "model.gguf");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->getString("general.architecture").value(), "llama");
  EXPECT_THAT(model->getU32PerLayer("llama.attention.head_count_kv", 2).value(),
              testing::ElementsAre(1, 2));
  EXPECT_EQ(model->getI64("test.i64").value(), INT64_MIN);
  EXPECT_THAT(model->getStringArray("tokenizer.ggml.tokens").value(),
              testing::ElementsAre("<s>", "a", "日本"));
  EXPECT_EQ(model->find("test.nested")->elementType, GgufType::Array);
  EXPECT_EQ(model->findTensor("token_embd.weight")->rows(), 3u);

  auto formats = GgufFile::open(corpus + "formats.gguf");
  ASSERT_TRUE(formats) << formats.error().message;
  for (const auto &traits : lathe::kernels::formatTable) {
    const GgufTensor *tensor =
        formats->findTensor("w." + std::string(traits.name));
    ASSERT_NE(tensor, nullptr) << traits.name;
    EXPECT_EQ(tensor->format, traits.format);
    EXPECT_EQ(tensor->k(), traits.blockElems);
    EXPECT_EQ(tensor->rows(), 2u);
  }
  auto aligned = GgufFile::open(corpus + "aligned.gguf");
  ASSERT_TRUE(aligned) << aligned.error().message;
  EXPECT_EQ(aligned->tensors()[2].offset % 64, 0u);
}

// B14: an absent output matrix is the models' business, not an error here.
TEST_F(ReadTest, AbsentTensorIsNullOrNamed) {
  auto file = open(smallModel().bytes());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->findTensor("output.weight"), nullptr);
  auto missing = file->getTensor("output.weight");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::NotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("'output.weight'"));
  EXPECT_THAT(missing.error().message, HasSubstr(dir.path("m.gguf")));
}

TEST_F(ReadTest, ViewsSurviveAMove) {
  auto file = open(smallModel().bytes());
  ASSERT_TRUE(file);
  GgufFile moved = std::move(*file);
  EXPECT_EQ(moved.getString("general.architecture").value(), "llama");
  EXPECT_EQ(moved.findTensor("token_embd.weight")->k(), 3u);
}

TEST_F(ReadTest, FilesWithoutTensorsOrKeysAreFine) {
  GgufWriter vocabulary;
  vocabulary.strings("tokenizer.ggml.tokens", {"a"});
  auto file = open(vocabulary.bytes());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->tensors().empty());
  EXPECT_TRUE(open(GgufWriter().bytes()));
}

TEST_F(ReadTest, TrailingDataAndGapsAreIgnored) {
  auto bytes = smallModel().bytes();
  bytes.insert(bytes.end(), 100, 0x5a);
  EXPECT_TRUE(open(bytes));
  GgufWriter gap;
  gap.tensor("a", {8}, ggmlF32, zeros(32))
      .tensor("b", {8}, ggmlF32, zeros(96), 64);
  auto file = open(gap.bytes());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors()[1].offset - file->tensors()[0].offset, 64u);
}

TEST_F(ReadTest, TensorsMayComeInAnyOrder) {
  GgufWriter writer;
  writer.tensor("b", {8}, ggmlF32, zeros(32), 32)
      .tensor("a", {8}, ggmlF32, zeros(32), 0);
  EXPECT_TRUE(open(writer.bytes()));
}

TEST_F(ReadTest, AlignmentKeyIsObeyed) {
  GgufWriter writer;
  writer.alignment = 128;
  writer.u32("general.alignment", 128)
      .tensor("a", {1}, ggmlF32, zeros(4))
      .tensor("b", {1}, ggmlF32, zeros(4));
  auto file = open(writer.bytes());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors()[0].offset % 128, 0u);
  EXPECT_EQ(file->tensors()[1].offset, file->tensors()[0].offset + 128);
}

TEST_F(ReadTest, OtherThanFilesAreRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo(dir.path("fifo").c_str(), 0600), 0);
  for (const std::string &path :
       {dir.path(), dir.path("fifo"), dir.path("none"), std::string("")}) {
    auto file = GgufFile::open(path);
    ASSERT_FALSE(file);
    EXPECT_THAT(file.error().message, HasSubstr(path));
  }
}

// B42: our choice is to look for damaged scales at import.
TEST_F(ReadTest, CheckBlocksNamesTensorAndBlock) {
  auto check = [&](uint32_t type, uint32_t block, uint32_t blocks,
                   const std::vector<size_t> &scales) {
    for (size_t at : scales)
      for (uint16_t bad : {0x7c00, 0x7e00, 0xfc00, 0xffff}) {
        GgufWriter::Bytes data(size_t(block) * blocks);
        data[size_t(block) * 5 + at] = static_cast<uint8_t>(bad);
        data[size_t(block) * 5 + at + 1] = static_cast<uint8_t>(bad >> 8);
        const auto &traits = traitsOf(*lathe::kernels::formatFromGgml(type));
        GgufWriter writer;
        writer.tensor("blk.0.attn_q.weight",
                      {traits.blockElems * 2, blocks / 2}, type, data);
        auto file = open(writer.bytes());
        ASSERT_TRUE(file) << file.error().message;
        auto checked = file->checkBlocks(file->tensors()[0]);
        ASSERT_FALSE(checked) << traits.name << " field at " << at;
        EXPECT_THAT(checked.error().message,
                    HasSubstr("tensor 'blk.0.attn_q.weight'"));
        EXPECT_THAT(
            checked.error().message,
            HasSubstr(fmt::format("5 (row 2, column {})", traits.blockElems)));
      }
  };
  for (const auto &traits : lathe::kernels::formatTable) {
    if (traits.blockElems == 1)
      continue;
    std::vector<size_t> scales = {size_t(traits.scaleAt)};
    if (traits.offsetAt >= 0)
      scales.push_back(size_t(traits.offsetAt));
    check(traits.ggmlType, traits.blockBytes, 6, scales);
  }
  check(ggmlF16, 2, 6, {0});
  // f32 and bf16 share the exponent of the upper half: 0x7f80.
  for (uint32_t type : {0u, 30u}) {
    size_t size = type ? 2 : 4;
    GgufWriter::Bytes data(size * 4);
    data[size * 3 - 2] = 0x80;
    data[size * 3 - 1] = 0xff;
    GgufWriter writer;
    writer.tensor("x", {4}, type, data);
    auto file = open(writer.bytes());
    ASSERT_TRUE(file);
    auto checked = file->checkBlocks(file->tensors()[0]);
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.error().message, HasSubstr("element 2"));
  }
}

TEST_F(ReadTest, CheckBlocksAcceptsFiniteScalesAndZeroBlocks) {
  auto file = open(smallModel().bytes());
  ASSERT_TRUE(file);
  for (const GgufTensor &tensor : file->tensors()) {
    auto checked = file->checkBlocks(tensor);
    EXPECT_TRUE(checked) << checked.error().message;
  }
}

} // namespace

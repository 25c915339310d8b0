// Damaged and crafted files: bugs.md B11, B12 a, B42 and their kinds.
#include "tests/unit/gguf/GgufTest.h"
#include "tests/unit/support/GgufReads.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>

namespace {
/// The largest single allocation since it was last set to 0.
std::atomic<size_t> largestAllocation = 0;
} // namespace

// Every allocation of this binary goes through here.
void *operator new(size_t size) {
  size_t seen = largestAllocation;
  while (size > seen && !largestAllocation.compare_exchange_weak(seen, size))
    ;
  if (void *memory = std::malloc(size ? size : 1))
    return memory;
  std::abort();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

using namespace lathe::frontend;
using namespace lathe::tests;
using testing::HasSubstr;

namespace {

using HostileTest = GgufTest;
using Bytes = GgufWriter::Bytes;

template <typename... T> Bytes bytesOf(T... values) {
  Bytes out;
  (GgufWriter::put(out, values), ...);
  return out;
}

TEST_F(HostileTest, OtherFilesAreRecognized) {
  auto refused = [&](std::string_view start, const char *hint) {
    Bytes bytes(start.begin(), start.end());
    bytes.resize(bytes.size() + 64);
    expectRefused(bytes, hint);
  };
  expectRefused({}, "empty");
  expectRefused({'G'}, "not a GGUF file");
  expectRefused({'G', 'G', 'U', 'F', 3}, "truncated");
  refused("PK\3\4", "zip archive");
  refused(std::string_view("\x10\0\0\0\0\0\0\0{\"a\":", 13), "safetensors");
  refused("version https://git-lfs.github.com/spec/v1\n", "git lfs pull");
  refused("<!DOCTYPE html>", "web page");
  refused("tjgg", "old GGML");
  refused("\x1f\x8b\x08", "compressed");
  refused("hello world", "not a GGUF file");
}

TEST_F(HostileTest, OtherVersionsAndByteOrders) {
  GgufWriter writer;
  for (uint32_t version : {0u, 1u, 4u, 255u}) {
    writer.version = version;
    expectRefused(writer.bytes(), "reads versions 2 and 3");
  }
  for (uint32_t version : {0x02000000u, 0x03000000u}) {
    writer.version = version;
    expectRefused(writer.bytes(), "big-endian byte order");
  }
  writer.magic = "FUGG";
  expectRefused(writer.bytes(), "big-endian byte order");
}

TEST_F(HostileTest, Counts) {
  for (uint64_t count : {uint64_t(1), uint64_t(65537), UINT64_MAX}) {
    GgufWriter keys;
    keys.keyCount = count;
    expectRefused(keys.bytes(), "keys are declared");
    GgufWriter tensors;
    tensors.tensorCount = count;
    expectRefused(tensors.bytes(), "tensors are declared");
  }
  GgufWriter fewer = smallModel();
  fewer.tensorCount = 5;
  expectRefused(fewer.bytes(), "tensor");
}

TEST_F(HostileTest, Dimensions) {
  auto refused = [&](std::vector<uint64_t> dims, uint32_t type,
                     const char *text, std::optional<uint32_t> rank = {}) {
    GgufWriter writer;
    writer.tensor("blk.0.attn_q.weight", dims, type, zeros(64), {}, rank);
    expectRefused(writer.bytes(), text);
    expectRefused(writer.bytes(), "'blk.0.attn_q.weight'");
  };
  refused({4, 0}, ggmlF32, "dimension 1 is 0");
  refused({0}, ggmlQ4_0, "dimension 0 is 0");
  refused({}, ggmlF32, "0 dimensions");
  refused({1, 1, 1, 1, 1}, ggmlF32, "5 dimensions");
  refused({4}, ggmlF32, "4294967295 dimensions", 0xffffffffu);
  refused({1152, (uint64_t(1) << 42) + 1}, ggmlQ4_0, "needs");
  refused({uint64_t(1) << 32, uint64_t(1) << 32}, ggmlF32, "too large");
  refused({1, uint64_t(1) << 62, 4}, ggmlF32, "too large");
  refused({uint64_t(1) << 63, 2}, ggmlQ4_0, "too large");
  refused({UINT64_MAX}, ggmlF32, "too large");
  refused({64, 8}, ggmlF32, "needs 2048 bytes");
  // B42
  refused({8, 64}, ggmlQ6_K, "not a multiple of 256");
  refused({4544}, 12, "not a multiple of 256");
  refused({80}, ggmlQ4_0, "not a multiple of 32");
}

TEST_F(HostileTest, TypesOfTensors) {
  for (auto [type, text] : {std::pair(99u, "unknown ggml type 99"),
                            {4u, "unknown ggml type 4"},
                            {0xffffffffu, "unknown ggml type 4294967295"},
                            {16u, "IQ2_XXS is not supported"},
                            {26u, "I32 is not supported"}}) {
    GgufWriter writer;
    writer.tensor("x", {256}, type, zeros(1024));
    expectRefused(writer.bytes(), text);
    expectRefused(writer.bytes(), "tensor 'x'");
  }
}

TEST_F(HostileTest, NamesOfTensorsAndKeys) {
  GgufWriter twice;
  twice.tensor("blk.0.attn_q.weight", {8}, ggmlF32, zeros(32))
      .tensor("blk.0.attn_q.weight", {8}, ggmlF32, zeros(32));
  expectRefused(twice.bytes(), "tensor 'blk.0.attn_q.weight' occurs twice");
  GgufWriter keys;
  keys.u32("a.b", 1).u32("a.b", 1);
  expectRefused(keys.bytes(), "key 'a.b' occurs twice");
  using namespace std::string_view_literals;
  for (std::string_view bad :
       {"\xff"sv, "a\0b"sv, "a\nb"sv, "\x7f"sv, "\xed\xa0\x80"sv}) {
    GgufWriter key, tensor;
    key.u32(bad, 1);
    expectRefused(key.bytes(), "not printable UTF-8");
    tensor.tensor(bad, {8}, ggmlF32, zeros(32));
    expectRefused(tensor.bytes(), "not printable UTF-8");
  }
  GgufWriter emptyKey, emptyTensor, longKey;
  emptyKey.u32("", 1);
  expectRefused(emptyKey.bytes(), "the name of key 0 is empty");
  emptyTensor.tensor("", {8}, ggmlF32, zeros(32));
  expectRefused(emptyTensor.bytes(), "the name of tensor 0 is empty");
  longKey.u32(std::string(70000, 'k'), 1);
  expectRefused(longKey.bytes(), "70000 bytes");
}

TEST_F(HostileTest, Values) {
  GgufWriter type;
  type.raw("k", 13, zeros(8));
  expectRefused(type.bytes(), "key 'k': unknown value type 13");
  GgufWriter boolean;
  boolean.raw("k", 7, {2});
  expectRefused(boolean.bytes(), "key 'k': a boolean with value 2");
  GgufWriter booleans;
  booleans.array<uint8_t>("k", 7, {1, 0, 9});
  expectRefused(booleans.bytes(), "key 'k': a boolean with value 9");
  GgufWriter string;
  string.raw("k", 8, bytesOf((uint64_t(1) << 63) - 1));
  expectRefused(string.bytes(), "key 'k': its string is said to have "
                                "9223372036854775807 bytes");
  for (uint32_t element = 0; element < 13; ++element) {
    GgufWriter array;
    array.raw("k", 9, bytesOf(element, uint64_t(1) << 60));
    expectRefused(array.bytes(), "key 'k': an array of 1152921504606846976");
  }
  GgufWriter elements;
  elements.raw("k", 9, bytesOf(uint32_t(77), uint64_t(1), uint64_t(0)));
  expectRefused(elements.bytes(), "key 'k': unknown value type 77");
  GgufWriter inner;
  inner.raw("k", 9, bytesOf(uint32_t(8), uint64_t(1), UINT64_MAX));
  expectRefused(inner.bytes(), "key 'k': element 0: its string");
}

TEST_F(HostileTest, NestedArrays) {
  auto nested = [](int depth) {
    Bytes value;
    for (int i = 1; i < depth; ++i) {
      GgufWriter::put<uint32_t>(value, 9);
      GgufWriter::put<uint64_t>(value, 1);
    }
    GgufWriter::put<uint32_t>(value, 0);
    GgufWriter::put<uint64_t>(value, 2);
    value.push_back(1);
    value.push_back(2);
    GgufWriter writer;
    writer.raw("deep", 9, value).u32("after", 7);
    return writer.bytes();
  };
  for (int depth : {1, 2, 4}) {
    auto file = open(nested(depth));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->getU32("after").value(), 7u);
    EXPECT_EQ(file->getI32Array("deep").has_value(), depth == 1);
    EXPECT_FALSE(file->getStringArray("deep"));
    EXPECT_FALSE(file->getU32PerLayer("deep", 1));
  }
  for (int depth : {5, 10000})
    expectRefused(nested(depth), "key 'deep': ");
}

TEST_F(HostileTest, Alignment) {
  for (uint32_t alignment : {0u, 3u, 48u, 0xffffffffu}) {
    GgufWriter writer;
    writer.u32("general.alignment", alignment);
    expectRefused(writer.bytes(), "'general.alignment'");
  }
  GgufWriter text, huge;
  text.string("general.alignment", "32");
  expectRefused(text.bytes(), "'general.alignment' is string");
  huge.u32("general.alignment", 1u << 31).tensor("x", {8}, ggmlF32, zeros(32));
  expectRefused(huge.bytes(), "tensor 'x' needs");
}

TEST_F(HostileTest, OffsetsOfTensors) {
  auto refused = [&](uint64_t offset, const char *text) {
    GgufWriter writer;
    writer.tensor("first", {16}, ggmlF32, zeros(64))
        .tensor("second", {8}, ggmlF32, zeros(32), offset);
    expectRefused(writer.bytes(), text);
    expectRefused(writer.bytes(), "'second'");
  };
  refused(65, "65, is not a multiple of the alignment, 32");
  refused(0, "overlaps");
  refused(32, "overlaps");
  refused(96, "needs");
  refused(uint64_t(1) << 63, "needs");
  refused(UINT64_MAX - 31, "needs");
}

TEST_F(HostileTest, TokenizerArrays) {
  GgufWriter none;
  none.strings("tokenizer.ggml.tokens", {});
  expectRefused(none.bytes(), "'tokenizer.ggml.tokens' is an empty array");
  GgufWriter numbers;
  numbers.array<uint32_t>("tokenizer.ggml.tokens", 4, {1});
  expectRefused(numbers.bytes(), "'tokenizer.ggml.tokens' is array of u32");
  GgufWriter text;
  text.string("tokenizer.ggml.tokens", "a");
  expectRefused(text.bytes(), "'tokenizer.ggml.tokens' is string");
  for (const char *key :
       {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"}) {
    GgufWriter shorter, alone, scalar;
    shorter.strings("tokenizer.ggml.tokens", {"a", "b"})
        .array<float>(key, 6, {0});
    expectRefused(shorter.bytes(), key);
    alone.array<float>(key, 6, {0});
    expectRefused(alone.bytes(), key);
    scalar.strings("tokenizer.ggml.tokens", {"a"}).f32(key, 0);
    expectRefused(scalar.bytes(), key);
  }
}

/// Opens a file and, if it is accepted, touches all that it offers. Nothing may
/// allocate more than the file's size accounts for: the widest is a 16-byte
/// view per 8-byte empty string, or an f32 per byte.
bool exercise(const std::string &path, size_t size) {
  largestAllocation = 0;
  struct Bound {
    size_t size;
    ~Bound() { EXPECT_LE(largestAllocation, 4 * size + 4096); }
  } bound{size};
  auto file = GgufFile::open(path);
  if (!file) {
    EXPECT_THAT(file.error().message, testing::StartsWith(path));
    return false;
  }
  (void)readWholeGguf(*file);
  for (const GgufTensor &tensor : file->tensors()) {
    EXPECT_EQ(tensor.data.size(),
              *rowBytes(tensor.format, tensor.k()) * tensor.rows());
    unsigned sum = 0;
    for (uint8_t byte : tensor.data)
      sum += byte;
    volatile unsigned sink = sum;
    (void)sink;
  }
  return true;
}

// B12 a: whatever is cut off, the file is refused, and once the records are
// whole, the message names the first tensor that is not.
TEST_F(HostileTest, TruncationAtEveryByteIsRefused) {
  auto bytes = smallModel().bytes();
  auto whole = open(bytes);
  ASSERT_TRUE(whole) << whole.error().message;
  uint64_t headerSize = whole->headerBytes(0).size();
  for (size_t size = 0; size < bytes.size(); ++size) {
    auto cut = open(Bytes(bytes.begin(), bytes.begin() + size));
    ASSERT_FALSE(cut) << "cut to " << size << " bytes";
    EXPECT_THAT(cut.error().message, HasSubstr(dir.path("m.gguf")));
    if (size < headerSize)
      continue;
    std::string_view first;
    for (const GgufTensor &tensor : whole->tensors())
      if (first.empty() && tensor.offset + tensor.data.size() > size)
        first = tensor.name;
    EXPECT_THAT(cut.error().message, HasSubstr("truncated"));
    EXPECT_THAT(cut.error().message, HasSubstr("'" + std::string(first) + "'"))
        << size;
  }
}

TEST_F(HostileTest, MutatedBytesNeverCrash) {
  auto original = smallModel().bytes();
  std::mt19937_64 random(20240601);
  int accepted = 0;
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes = original;
    for (uint64_t n = 1 + random() % 4; n > 0; --n) {
      size_t at = random() % bytes.size();
      switch (random() % 5) {
      case 0:
        bytes[at] ^= static_cast<uint8_t>(1u << random() % 8);
        break;
      case 1:
        bytes[at] = static_cast<uint8_t>(random());
        break;
      case 2: { // an extreme number
        static constexpr uint64_t extreme[] = {
            0, 1, 0x7fffffff, 0xffffffff, uint64_t(1) << 62, UINT64_MAX};
        uint64_t value = extreme[random() % std::size(extreme)];
        std::memcpy(&bytes[at], &value, std::min<size_t>(8, bytes.size() - at));
        break;
      }
      case 3:
        bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(at));
        break;
      case 4:
        bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at),
                     static_cast<uint8_t>(random()));
        break;
      }
    }
    accepted += exercise(dir.write("m.gguf", bytes), bytes.size());
  }
  // Some mutations hit only values and weights.
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 1500);
}

// A header of tiny keys may not make the index far larger than the limit.
TEST_F(HostileTest, ManyKeysAreBounded) {
  GgufWriter many;
  for (int i = 0; i < 65536; ++i)
    many.u8(std::to_string(i), 0);
  EXPECT_TRUE(open(many.bytes()));
  many.u8("x", 0);
  expectRefused(many.bytes(), "65537 keys are declared");
}

} // namespace

#include "frontend/models/Tokenizer.h"

#include "runtime/text/Tokenizer.h"
#include "tests/unit/text/Vocabularies.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace lathe::frontend {
namespace {

using runtime::kNoToken;
using runtime::TokenizerModel;
using runtime::TokenizerSpec;
using runtime::TokenType;
using testing::ElementsAre;
using testing::HasSubstr;

/// A GGUF of metadata only, under tokenizer.ggml. unless the key has a dot.
class Metadata {
public:
  Metadata &text(const std::string &key, const std::string &value) {
    begin(key, 8);
    putString(value);
    return *this;
  }
  Metadata &flag(const std::string &key, bool value) {
    begin(key, 7);
    body.push_back(value);
    return *this;
  }
  Metadata &number(const std::string &key, uint32_t value) {
    begin(key, 4);
    put(value);
    return *this;
  }
  Metadata &texts(const std::string &key,
                  const std::vector<std::string> &values) {
    begin(key, 9);
    put(uint32_t{8});
    put(uint64_t{values.size()});
    for (const std::string &value : values)
      putString(value);
    return *this;
  }
  template <typename T>
  Metadata &numbers(const std::string &key, uint32_t type,
                    const std::vector<T> &values) {
    begin(key, 9);
    put(type);
    put(uint64_t{values.size()});
    for (T value : values)
      put(value);
    return *this;
  }
  Metadata &floats(const std::string &key, const std::vector<float> &values) {
    return numbers(key, 6, values);
  }
  Metadata &types(const std::vector<int32_t> &values) {
    return numbers("token_type", 5, values);
  }

  /// Writes the file, reads the tokenizer and removes the file.
  runtime::Result<TokenizerSpec> read() const {
    auto path = std::filesystem::temp_directory_path() /
                fmt::format("lathe-tokenizer-{}.gguf", getpid());
    {
      std::ofstream out(path, std::ios::binary);
      out.write("GGUF\3\0\0\0\0\0\0\0\0\0\0\0", 16);
      out.write(reinterpret_cast<const char *>(&count), 8);
      out.write(body.data(), body.size());
    }
    auto file = GgufFile::open(path);
    std::filesystem::remove(path);
    if (!file)
      return runtime::failFrom(file);
    return readTokenizer(*file);
  }

private:
  template <typename T> void put(T value) {
    body.append(reinterpret_cast<const char *>(&value), sizeof value);
  }
  void putString(const std::string &text) {
    put(uint64_t{text.size()});
    body += text;
  }
  void begin(const std::string &key, uint32_t type) {
    putString(key.find('.') == key.npos ? "tokenizer.ggml." + key : key);
    put(type);
    ++count;
  }

  std::string body;
  uint64_t count = 0;
};

std::string errorOf(const Metadata &metadata) {
  auto spec = metadata.read();
  return spec ? "no error" : spec.error().message;
}

Metadata byteLevel(const std::vector<std::string> &more = {}) {
  std::vector<std::string> tokens{"a", "b", "ab"};
  tokens.insert(tokens.end(), more.begin(), more.end());
  Metadata metadata;
  metadata.text("model", "gpt2")
      .texts("tokens", tokens)
      .texts("merges", {"a b"});
  return metadata;
}

Metadata pieces() {
  return Metadata()
      .text("model", "llama")
      .texts("tokens", {"<unk>", "<s>", "</s>", "<0x0A>", "a"})
      .floats("scores", {0, 0, 0, 0, -1});
}

TEST(ReadTokenizer, ByteLevel) {
  auto spec = byteLevel({"<|im_end|>", "<|endoftext|>"})
                  .text("pre", "qwen2")
                  .types({1, 1, 1, 3, 3})
                  .number("eos_token_id", 3)
                  .number("bos_token_id", 4)
                  .flag("add_space_prefix", true)
                  .text("tokenizer.chat_template", "{{ x }}")
                  .read();
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->model, TokenizerModel::ByteLevelBpe);
  EXPECT_EQ(spec->preTokenizer, "qwen2");
  EXPECT_THAT(spec->merges, ElementsAre("a b"));
  EXPECT_EQ(spec->bosId, 4);
  EXPECT_EQ(spec->eosId, 3);
  EXPECT_EQ(spec->eotId, 3);
  EXPECT_EQ(spec->unkId, kNoToken);
  EXPECT_THAT(spec->endIds, ElementsAre(3, 4));
  EXPECT_FALSE(spec->addBos);
  EXPECT_FALSE(spec->addSpacePrefix);
  EXPECT_EQ(spec->chatTemplate, "{{ x }}");
}

TEST(ReadTokenizer, Llama3BeginsWithBos) {
  auto metadata = byteLevel({"<|begin_of_text|>"})
                      .text("pre", "llama-bpe")
                      .number("bos_token_id", 3);
  EXPECT_TRUE(metadata.read()->addBos);
  EXPECT_FALSE(Metadata(metadata).flag("add_bos_token", false).read()->addBos);
}

TEST(ReadTokenizer, UnknownPreTokenizerIsAnError) {
  EXPECT_THAT(errorOf(byteLevel().text("pre", "new-model")),
              AllOf(HasSubstr("tokenizer.ggml.pre"), HasSubstr("'new-model'"),
                    HasSubstr("llama-bpe")));
  EXPECT_THAT(errorOf(byteLevel()), HasSubstr("tokenizer.ggml.pre"))
      << "none is not a default";
}

TEST(ReadTokenizer, UnknownModelIsAnError) {
  EXPECT_THAT(errorOf(Metadata().text("model", "rwkv").texts("tokens", {"a"})),
              AllOf(HasSubstr("rwkv"), HasSubstr("gpt2, llama, t5")));
}

TEST(ReadTokenizer, PiecesHaveTheirDefaults) {
  auto spec = pieces().read();
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->unkId, 0);
  EXPECT_EQ(spec->bosId, 1);
  EXPECT_EQ(spec->eosId, 2);
  EXPECT_TRUE(spec->addBos);
  EXPECT_FALSE(spec->addEos);
  EXPECT_TRUE(spec->addSpacePrefix);
  EXPECT_THAT(spec->endIds, ElementsAre(2));
  // Types were missing.
  EXPECT_THAT(spec->types, ElementsAre(TokenType::Unknown, TokenType::Control,
                                       TokenType::Control, TokenType::Byte,
                                       TokenType::Normal));
  EXPECT_FALSE(pieces().flag("add_space_prefix", false).read()->addSpacePrefix);
}

TEST(ReadTokenizer, EveryEndCounts) {
  auto spec = byteLevel({"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>",
                         "<|fim_pad|>", "<|other|>"})
                  .text("pre", "llama3")
                  .types({1, 1, 1, 4, 3, 3, 3, 3})
                  .number("eos_token_id", 5)
                  .read();
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->eotId, 3);
  EXPECT_EQ(spec->eomId, 4);
  EXPECT_THAT(spec->endIds, ElementsAre(3, 4, 5, 6));
  EXPECT_EQ(spec->types[3], TokenType::Control)
      << "a user must not be able to type an end of turn";
  auto keyed = byteLevel({"x", "y"})
                   .text("pre", "gpt-2")
                   .number("eot_token_id", 4)
                   .number("eos_token_id", 3)
                   .read();
  EXPECT_THAT(keyed->endIds, ElementsAre(3, 4));
}

TEST(ReadTokenizer, GemmasTagIsNoEnd) {
  auto spec = Metadata()
                  .text("model", "llama")
                  .texts("tokens", {"<pad>", "<eos>", "<bos>", "<unk>", "</s>",
                                    "<end_of_turn>"})
                  .floats("scores", {0, 0, 0, 0, 0, 0})
                  .types({3, 3, 3, 3, 4, 3})
                  .number("bos_token_id", 2)
                  .number("eos_token_id", 1)
                  .number("unknown_token_id", 3)
                  .read();
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_THAT(spec->endIds, ElementsAre(1, 5));
  EXPECT_EQ(spec->eotId, 5);
  EXPECT_EQ(spec->types[4], TokenType::UserDefined);
}

TEST(ReadTokenizer, WhatMergesYieldIsNoEnd) {
  auto spec = Metadata()
                  .text("model", "gpt2")
                  .text("pre", "qwen2")
                  .texts("tokens", {"<", "/s>", "</s>", "<|im_end|>"})
                  .texts("merges", {"< /s>"})
                  .types({1, 1, 1, 3})
                  .read();
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_THAT(spec->endIds, ElementsAre(3));
  EXPECT_EQ(spec->types[2], TokenType::Normal);
}

TEST(ReadTokenizer, FaultsAreNamed) {
  EXPECT_THAT(errorOf(pieces().types({1, 1})), HasSubstr("token_type"));
  EXPECT_THAT(errorOf(pieces().types({1, 1, 1, 1, 9})), HasSubstr("token 4"));
  EXPECT_THAT(errorOf(pieces().number("bos_token_id", 5)),
              HasSubstr("bos_token_id"));
  EXPECT_THAT(errorOf(pieces().number("eot_token_id", 0xFFFFFFFF)),
              HasSubstr("eot_token_id"));
  EXPECT_THAT(errorOf(pieces().text("add_bos_token", "yes")),
              HasSubstr("add_bos_token"));
  EXPECT_THAT(errorOf(pieces().floats("precompiled_charsmap", {1})),
              HasSubstr("precompiled_charsmap"));
  EXPECT_THAT(errorOf(Metadata().text("model", "llama").texts("tokens", {})),
              HasSubstr("tokens"));
  EXPECT_THAT(errorOf(Metadata().text("model", "llama").texts("tokens", {"a"})),
              HasSubstr("scores"));
  EXPECT_THAT(errorOf(Metadata()
                          .text("model", "llama")
                          .texts("tokens", {"a"})
                          .floats("scores", {0, 0})),
              HasSubstr("scores"));
  EXPECT_THAT(errorOf(Metadata().texts("tokens", {"a"})), HasSubstr("model"));
}

} // namespace
} // namespace lathe::frontend

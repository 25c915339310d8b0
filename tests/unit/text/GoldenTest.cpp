// Token ids as llama.cpp and Hugging Face's tokenizers give them for 2,000
// strings per kind (tests/golden/tokenizer/make_tokenizer.py). The synthetic
// vocabularies are in the golden file. The real ones are read from GGUF files
// in LATHE_MODELS (tests/golden/fetch_models) and in LATHE_VOCABULARIES, the
// folder "models" of llama.cpp's sources; those that are not there are skipped
// with a notice.

#include "frontend/models/Tokenizer.h"
#include "tests/unit/text/Vocabularies.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zstd.h>

namespace lathe::runtime::test {
namespace {

using nlohmann::json;

/// The golden file; without kinds if it cannot be read, which a test notices.
json readGolden() {
  const char *root = std::getenv("LATHE_SOURCE_DIR");
  std::string path = std::string(root ? root : ".") +
                     "/tests/golden/tokenizer/tokenizer.json.zst";
  std::ifstream file(path, std::ios::binary);
  std::string packed{std::istreambuf_iterator<char>(file), {}};
  auto size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
    return {{"kinds", json::array()}};
  std::string text(size, '\0');
  if (ZSTD_isError(ZSTD_decompress(text.data(), text.size(), packed.data(),
                                   packed.size())))
    return {{"kinds", json::array()}};
  return json::parse(text);
}

const json &golden() {
  static const json value = readGolden();
  return value;
}

TokenizerSpec specOf(const json &vocabulary, const std::string &pre) {
  TokenizerSpec spec;
  std::string model = vocabulary.at("model");
  spec.model = model == "gpt2"    ? TokenizerModel::ByteLevelBpe
               : model == "llama" ? TokenizerModel::SentencePieceBpe
                                  : TokenizerModel::Unigram;
  spec.preTokenizer = pre;
  spec.tokens = vocabulary.at("tokens");
  for (int type : vocabulary.at("token_type"))
    spec.types.push_back(static_cast<TokenType>(type));
  if (model == "gpt2")
    spec.merges = vocabulary.at("merges");
  else
    spec.scores = vocabulary.at("scores").get<std::vector<float>>();
  spec.bosId = vocabulary.value("bos_token_id", kNoToken);
  spec.eosId = vocabulary.at("eos_token_id");
  spec.unkId = vocabulary.value("unknown_token_id", kNoToken);
  spec.addBos = vocabulary.value("add_bos_token", pre == "llama-bpe");
  spec.addEos = model == "t5";
  spec.addSpacePrefix = vocabulary.value("add_space_prefix", false);
  spec.removeExtraSpaces = vocabulary.value("remove_extra_whitespaces", false);
  return spec;
}

std::string findModel(const std::string &name) {
  for (const char *variable : {"LATHE_MODELS", "LATHE_VOCABULARIES"})
    if (const char *folder = std::getenv(variable)) {
      auto path = std::filesystem::path(folder) / name;
      if (std::filesystem::exists(path))
        return path;
    }
  return {};
}

TEST(Golden, FileIsComplete) { EXPECT_EQ(golden().at("kinds").size(), 16u); }

class GoldenTest : public testing::TestWithParam<int> {
protected:
  const json &kind() const { return golden().at("kinds").at(GetParam()); }

  /// Fills spec, or skips the test if the vocabulary's file is not there.
  void SetUp() override {
    if (kind().contains("vocabulary")) {
      std::string name = kind().at("vocabulary");
      spec = specOf(golden().at("vocabularies").at(name), kind().at("pre"));
      return;
    }
    std::string name = kind().at("file");
    std::string path = findModel(name);
    if (path.empty())
      GTEST_SKIP() << name << " is in neither LATHE_MODELS nor "
                   << "LATHE_VOCABULARIES: it is NOT tested";
    auto file = frontend::GgufFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    auto read = frontend::readTokenizer(*file);
    ASSERT_TRUE(read) << read.error().message;
    spec = std::move(*read);
  }

  TokenizerSpec spec;
};

TEST_P(GoldenTest, IdsEqualTheOracles) {
  Tokenizer tokenizer = makeTokenizer(spec);
  const json &strings = golden().at("strings");
  const json &ids = kind().at("ids");
  ASSERT_EQ(strings.size(), 2000u);
  ASSERT_EQ(ids.size(), strings.size());
  int wrong = 0;
  for (size_t i = 0; i < strings.size() && wrong < 5; ++i) {
    std::string text = strings[i];
    std::vector<int32_t> expected = ids[i];
    std::vector<int32_t> got = encode(tokenizer, text);
    if (got != expected) {
      ++wrong;
      EXPECT_EQ(names(tokenizer, got), names(tokenizer, expected))
          << kind().at("name") << ", string " << i << ": " << strings[i].dump();
    }
    // No marker comes out of plain text.
    for (int32_t id : got)
      ASSERT_FALSE(tokenizer.isSpecial(id) && id != spec.unkId)
          << strings[i].dump();
  }
}

TEST_P(GoldenTest, IdsWithMarkersParsedEqualLlamaCpp) {
  Tokenizer tokenizer = makeTokenizer(spec);
  const json &strings = golden().at("strings");
  const json &ids = kind().at("special_ids");
  if (ids.empty())
    GTEST_SKIP() << "llama.cpp cannot run this vocabulary";
  for (size_t i = 0; i < ids.size(); ++i) {
    std::string text = strings[i];
    if (ids[i].is_null() ||
        (spec.addBos && text.starts_with(spec.tokens[spec.bosId])))
      continue; // llama.cpp would add a second BOS.
    std::vector<int32_t> expected = ids[i];
    std::vector<int32_t> got =
        encode(tokenizer, text, {.addSpecial = true, .parseSpecial = true});
    ASSERT_EQ(names(tokenizer, got), names(tokenizer, expected))
        << kind().at("name") << ", string " << i << ": " << strings[i].dump();
  }
}

TEST_P(GoldenTest, DecodingUndoesEncoding) {
  if (spec.model == TokenizerModel::Unigram ||
      kind().at("name") == "characters")
    GTEST_SKIP() << "this vocabulary cannot express all text";
  Tokenizer tokenizer = makeTokenizer(spec);
  bool byteLevel = spec.model == TokenizerModel::ByteLevelBpe;
  // SmolLM2 has no token for some bytes.
  std::string missing;
  for (int byte = 0; byteLevel && byte < 256; ++byte)
    if (encode(tokenizer, std::string(1, char(byte))).empty())
      missing.push_back(char(byte));
  EXPECT_LE(missing.size(), 21u);
  for (const json &string : golden().at("strings")) {
    std::string text = string;
    // SentencePiece cannot tell U+2581 from a space.
    if (byteLevel ? text.find_first_of(missing) != text.npos
                  : text.find("▁") != text.npos)
      continue;
    ASSERT_EQ(tokenizer.decode(encode(tokenizer, text)), text) << string.dump();
  }
}

std::string nameOf(const testing::TestParamInfo<int> &info) {
  std::string name = golden().at("kinds").at(info.param).at("name");
  for (char &c : name)
    c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, GoldenTest,
    testing::Range(0, static_cast<int>(golden().at("kinds").size())), nameOf);

} // namespace
} // namespace lathe::runtime::test

/// \file
/// Damaged, cut and foreign files: each gets one clear error, or the damage is
/// found by verify.
#include "tests/unit/engine/TinyEngine.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

namespace lathe::tests {
namespace {

using runtime::Engine;
using runtime::ErrorKind;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

/// A signed engine on disk whose bytes can be changed in place.
class DamagedEngine : public testing::Test {
protected:
  void SetUp() override {
    path = dir.path("tiny.lathe");
    auto key = runtime::SigningKey::fromSeed({1});
    ASSERT_TRUE(key);
    codegen::WriteOptions options;
    options.signer = &*key;
    ASSERT_TRUE(codegen::writeEngine(path, tinyDescription(), options));
    whole = readBytes(path);
    header = *runtime::decodeHeader(whole);
    fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
  }
  void TearDown() override { ::close(fd); }

  void put(uint64_t offset, uint8_t byte) {
    ASSERT_EQ(::pwrite(fd, &byte, 1, off_t(offset)), 1);
  }

  /// The first error that opening and verifying show; empty if none.
  std::string firstError() {
    auto opened = Engine::open(path, trustAll());
    if (!opened)
      return opened.error().message;
    if (auto sections = (*opened)->verifySections(); !sections)
      return sections.error().message;
    if (auto weights = (*opened)->verifyWeights(); !weights)
      return weights.error().message;
    return {};
  }

  TempDir dir;
  std::string path;
  Bytes whole;
  runtime::EngineHeader header;
  int fd = -1;
};

/// One line that names the file and says what to do.
auto isClear() {
  return AllOf(HasSubstr("tiny.lathe: "),
               AnyOf(HasSubstr("again"), HasSubstr("lathe compile")),
               testing::Not(HasSubstr("\n")));
}

TEST_F(DamagedEngine, IsWholeBefore) { EXPECT_EQ(firstError(), ""); }

TEST_F(DamagedEngine, EveryFlipInHeaderManifestAndTrailerFailsToOpen) {
  auto flip = [&](uint64_t from, uint64_t to) {
    for (uint64_t at = from; at < to; ++at)
      for (uint8_t mask : {0x01, 0x80, 0xff}) {
        put(at, whole[at] ^ mask);
        auto opened = Engine::open(path, trustAll());
        put(at, whole[at]);
        ASSERT_FALSE(opened) << "byte " << at << " mask " << int(mask);
        ASSERT_THAT(opened.error().message, isClear());
      }
  };
  flip(0, runtime::engineHeaderBytes);
  flip(header.manifestOffset, whole.size());
}

TEST_F(DamagedEngine, EveryFlipInPaddingFailsToOpen) {
  for (uint64_t at = runtime::engineHeaderBytes; at < 4096; at += 37) {
    put(at, 0x10);
    EXPECT_THAT(firstError(), AllOf(isClear(), HasSubstr("between")));
    put(at, whole[at]);
  }
}

TEST_F(DamagedEngine, FlipsInSectionsAreFound) {
  for (uint64_t at = 4096; at < header.manifestOffset; at += 61) {
    put(at, whole[at] ^ 0x04);
    ASSERT_THAT(firstError(), isClear()) << "byte " << at;
    put(at, whole[at]);
  }
  EXPECT_EQ(firstError(), "");
}

TEST_F(DamagedEngine, FlippedWeightOpensAndVerifyNamesItsTensors) {
  put(4096 + 3, whole[4096 + 3] ^ 1);
  auto engine = openOrFail(path);
  ASSERT_TRUE(engine);
  EXPECT_TRUE(engine->verifySections());
  auto verified = engine->verifyWeights();
  ASSERT_FALSE(verified);
  EXPECT_THAT(verified.error().message,
              AllOf(isClear(), HasSubstr("chunk 0 of the weights (bytes 4096"),
                    HasSubstr("'token_embd', 'output_norm', 'blk.0.attn_q'")));
}

TEST_F(DamagedEngine, SectionsAreHashedBeforeUse) {
  auto engine = openOrFail(path);
  ASSERT_TRUE(engine);
  for (const fb::Section *section : *engine->manifest().sections()) {
    uint64_t at = section->offset() + section->bytes() / 2;
    put(at, whole[at] ^ 1);
    auto damaged = openOrFail(path);
    std::string error;
    switch (section->kind()) {
    case fb::SectionKind::Code: {
      uint32_t target =
          runtime::viewOf(section->name()) == "cpu:generic" ? 0 : 1;
      auto code = damaged->loadCode(target, runtime::CpuFeatures::detect());
      ASSERT_FALSE(code);
      error = code.error().message;
      break;
    }
    case fb::SectionKind::Ir:
      error = damaged->ir(runtime::viewOf(section->name())).error().message;
      break;
    case fb::SectionKind::Source: {
      uint32_t target =
          runtime::viewOf(section->name()) == "cpu:generic" ? 0 : 1;
      error = damaged->sources(target).error().message;
      break;
    }
    case fb::SectionKind::Tokenizer:
      error = damaged->tokenizer().error().message;
      break;
    default:
      error = damaged->verifyWeights().error().message;
    }
    put(at, whole[at]);
    EXPECT_THAT(error, AllOf(isClear(), HasSubstr("damaged")))
        << fb::EnumNameSectionKind(section->kind());
  }
}

TEST_F(DamagedEngine, CutAtEveryLengthFailsToOpen) {
  for (uint64_t size = whole.size(); size-- > 0;) {
    ASSERT_EQ(::ftruncate(fd, off_t(size)), 0);
    auto opened = Engine::open(path, trustAll());
    ASSERT_FALSE(opened) << size << " bytes";
    ASSERT_THAT(opened.error().message, isClear());
    ASSERT_EQ(opened.error().kind, ErrorKind::InvalidInput);
  }
}

TEST_F(DamagedEngine, MoreBytesThanTheHeaderSaysFailToOpen) {
  put(whole.size(), 0);
  EXPECT_THAT(firstError(), isClear());
}

TEST_F(DamagedEngine, BytesBetweenManifestAndTrailerAreRefused) {
  // All check sums right, but 64 bytes that nothing covers.
  runtime::EngineHeader longer = header;
  longer.fileBytes += 64;
  auto bytes = runtime::encodeHeader(longer);
  runtime::EngineTrailer trailer;
  trailer.digest = runtime::manifestDigest(
      bytes,
      std::span(whole).subspan(header.manifestOffset, header.manifestBytes));
  auto end = runtime::encodeTrailer(trailer);
  Bytes file(whole.begin(), whole.end() - runtime::engineTrailerBytes);
  std::copy(bytes.begin(), bytes.end(), file.begin());
  file.resize(file.size() + 64);
  file.insert(file.end(), end.begin(), end.end());
  auto opened = Engine::open(dir.write("tiny.lathe", file), trustAll());
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message,
              AllOf(isClear(), HasSubstr("the header places the manifest")));
}

TEST_F(DamagedEngine, OtherHeaderVersionIsNamed) {
  put(8, 2);
  auto opened = Engine::open(path, trustAll());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::Unsupported);
  EXPECT_THAT(opened.error().message,
              AllOf(isClear(), HasSubstr("version is 2, expected 1")));
}

TEST_F(DamagedEngine, OtherMinReaderIsNamed) {
  dir.write("new.lathe", withFields(whole, [](fb::ManifestT &manifest) {
              manifest.format_version = 9;
              manifest.min_reader = 8;
              manifest.producer = "lathe 7.0";
              manifest.model.reset(); // a newer one may look quite different
            }));
  auto opened = Engine::open(dir.path("new.lathe"), trustAll());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::Unsupported);
  EXPECT_THAT(opened.error().message,
              AllOf(HasSubstr("new.lathe: "),
                    HasSubstr("format version 8, this one knows 2"),
                    HasSubstr("'lathe 7.0'")));
}

TEST_F(DamagedEngine, OlderFormatIsNamed) {
  dir.write("old.lathe", withFields(whole, [](fb::ManifestT &manifest) {
              manifest.format_version = manifest.min_reader = 1;
            }));
  auto opened = Engine::open(dir.path("old.lathe"), trustAll());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::Unsupported);
  EXPECT_THAT(opened.error().message,
              HasSubstr("of format version 1, this one reads 2 and later"));
}

TEST_F(DamagedEngine, NewerFormatThatOldReadersMayReadOpens) {
  dir.write("new.lathe", withFields(whole, [](fb::ManifestT &manifest) {
              manifest.format_version = 9;
            }));
  EXPECT_TRUE(openOrFail(dir.path("new.lathe")));
}

TEST_F(DamagedEngine, OtherAbiCanBeInspectedButNotRun) {
  dir.write("abi.lathe", withFields(whole, [](fb::ManifestT &manifest) {
              manifest.step_abi = 77;
            }));
  auto engine = openOrFail(dir.path("abi.lathe"));
  ASSERT_TRUE(engine);
  EXPECT_TRUE(engine->ir("plan-memory"));
  auto chosen = engine->selectTarget(runtime::CpuFeatures());
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().kind, ErrorKind::Unsupported);
  auto loaded = engine->loadCode(0, runtime::CpuFeatures());
  ASSERT_FALSE(loaded);
  for (const std::string &message :
       {chosen.error().message, loaded.error().message})
    EXPECT_THAT(message, AllOf(HasSubstr("abi.lathe: "),
                               HasSubstr("step ABI 77, expected 2"),
                               HasSubstr("compile the model again")));
}

TEST(ForeignFile, IsNamedAsSuch) {
  TempDir dir;
  std::string text = "GGUF\3";
  text.resize(1000);
  for (const std::string &path :
       {dir.write("m.gguf", text), dir.write("empty", "")}) {
    auto opened = Engine::open(path);
    ASSERT_FALSE(opened);
    EXPECT_THAT(opened.error().message,
                AllOf(HasSubstr(path), HasSubstr("not an engine file"),
                      HasSubstr("lathe compile")));
  }
  auto missing = Engine::open(dir.path("missing"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::NotFound);
  EXPECT_FALSE(Engine::open(dir.path()));
}

} // namespace
} // namespace lathe::tests

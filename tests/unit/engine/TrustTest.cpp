/// \file
/// Keys, signatures, and whose code is run.
#include "tests/unit/engine/TinyEngine.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <thread>

namespace lathe::tests {
namespace {

using runtime::Engine;
using runtime::ErrorKind;
using runtime::OpenOptions;
using runtime::PublicKey;
using runtime::SigningKey;
using runtime::TrustState;
using runtime::TrustStore;
using testing::AllOf;
using testing::HasSubstr;

std::span<const uint8_t> bytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

TEST(Ed25519, MatchesRfc8032) {
  // RFC 8032, 7.1, TEST 2: secret key, public key, message 0x72, signature.
  auto parse = [](const char *digits) {
    return PublicKey::parse(std::string("ed25519:") + digits)->bytes;
  };
  auto key = SigningKey::fromSeed(parse(
      "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"));
  ASSERT_TRUE(key);
  EXPECT_EQ(key->publicKey().text(),
            "ed25519:3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12a"
            "f4660c");
  auto first =
      parse("92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da");
  auto second =
      parse("085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  auto signature = key->sign(bytesOf("\x72"));
  ASSERT_TRUE(signature);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), signature->begin()));
  EXPECT_TRUE(
      std::equal(second.begin(), second.end(), signature->begin() + 32));
  EXPECT_TRUE(key->publicKey().verifies(bytesOf("\x72"), *signature));
  EXPECT_FALSE(key->publicKey().verifies(bytesOf("\x73"), *signature));
  (*signature)[5] ^= 1;
  EXPECT_FALSE(key->publicKey().verifies(bytesOf("\x72"), *signature));
}

TEST(PublicKey, ParsesOnlyWhatItPrints) {
  auto key = SigningKey::generate();
  ASSERT_TRUE(key);
  std::string text = key->publicKey().text();
  EXPECT_EQ(*PublicKey::parse(text), key->publicKey());
  EXPECT_FALSE(PublicKey::parse(""));
  EXPECT_FALSE(PublicKey::parse(text + "0"));
  EXPECT_FALSE(PublicKey::parse(text.substr(1)));
  EXPECT_FALSE(PublicKey::parse(text.substr(0, text.size() - 1) + "g"));
}

TEST(TrustStore, MakesOneKeyAndKeepsItPrivate) {
  TempDir dir;
  TrustStore store(dir.path("config/lathe"));
  auto none = store.ownPublicKey();
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  auto key = store.ownKey();
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_EQ(store.ownKey()->seed(), key->seed());
  EXPECT_EQ(**store.ownPublicKey(), key->publicKey());
  struct stat status;
  ASSERT_EQ(::stat(dir.path("config/lathe/signing-key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(::stat(dir.path("config/lathe").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  EXPECT_NE(SigningKey::generate()->seed(), key->seed());
}

TEST(TrustStore, GivesAllThreadsTheSameKey) {
  TempDir dir;
  std::array<PublicKey, 8> keys;
  std::vector<std::thread> threads;
  for (PublicKey &key : keys)
    threads.emplace_back([&] {
      auto own = TrustStore(dir.path("lathe")).ownKey();
      if (own)
        key = own->publicKey();
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_NE(keys[0], PublicKey());
  EXPECT_THAT(keys, testing::Each(keys[0]));
  int files = 0;
  for (const auto &entry :
       std::filesystem::directory_iterator(dir.path("lathe")))
    files += entry.exists();
  EXPECT_EQ(files, 1) << "a temporary file is left";
}

TEST(TrustStore, RefusesKeysThatOthersCanRead) {
  TempDir dir;
  TrustStore store(dir.path());
  ASSERT_TRUE(store.ownKey());
  std::string path = dir.path("signing-key");
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  auto key = store.ownKey();
  ASSERT_FALSE(key);
  EXPECT_THAT(key.error().message,
              AllOf(HasSubstr("may be read by other users"),
                    HasSubstr("chmod 600 " + path)));
}

TEST(TrustStore, RefusesDamagedKeyFiles) {
  TempDir dir;
  TrustStore store(dir.path());
  ASSERT_TRUE(store.ownKey());
  std::string text = readFile(dir.path("signing-key"));
  for (std::string damaged :
       {std::string(), text.substr(0, 30), text + "x", "x" + text}) {
    dir.write("signing-key", damaged);
    ASSERT_EQ(::chmod(dir.path("signing-key").c_str(), 0600), 0);
    auto key = store.ownKey();
    ASSERT_FALSE(key) << damaged;
    EXPECT_THAT(key.error().message, HasSubstr("not a signing key"));
    EXPECT_EQ(readFile(dir.path("signing-key")), damaged) << "overwritten";
  }
}

TEST(TrustStore, RemembersAcceptedKeys) {
  TempDir dir;
  TrustStore store(dir.path("lathe"));
  EXPECT_TRUE(store.accepted()->empty());
  PublicKey first{{1}}, second{{2}};
  ASSERT_TRUE(store.accept(first, "Ann's laptop"));
  ASSERT_TRUE(store.accept(second, ""));
  ASSERT_TRUE(store.accept(first, "again"));
  auto keys = store.accepted();
  ASSERT_TRUE(keys);
  ASSERT_EQ(keys->size(), 2u);
  EXPECT_EQ((*keys)[0].key, first);
  EXPECT_EQ((*keys)[0].note, "Ann's laptop");
  EXPECT_EQ((*keys)[1].key, second);
  EXPECT_FALSE(store.accept(PublicKey{{3}}, "two\nlines"));

  dir.write("lathe/trusted-keys", "# comment\n\ned25519:12 short\n");
  ASSERT_EQ(::chmod(dir.path("lathe/trusted-keys").c_str(), 0600), 0);
  keys = store.accepted();
  ASSERT_FALSE(keys);
  EXPECT_THAT(keys.error().message, HasSubstr("trusted-keys:3: "));
  EXPECT_FALSE(store.accept(first, ""));
}

TEST(TrustStore, RefusesListsThatOthersCanChange) {
  TempDir dir;
  TrustStore store(dir.path());
  ASSERT_TRUE(store.accept(PublicKey{{1}}, ""));
  ASSERT_EQ(::chmod(dir.path("trusted-keys").c_str(), 0666), 0);
  auto keys = store.accepted();
  ASSERT_FALSE(keys);
  EXPECT_THAT(keys.error().message, HasSubstr("changed by other users"));
}

/// The environment of one user while it lives.
class User {
public:
  explicit User(const TempDir &home) {
    ::setenv("XDG_CONFIG_HOME", home.path().c_str(), 1);
  }
  ~User() { ::unsetenv("XDG_CONFIG_HOME"); }
};

TEST(Trust, UsesTheXdgDirectories) {
  ::unsetenv("XDG_CONFIG_HOME");
  ::setenv("HOME", "/home/ann", 1);
  EXPECT_EQ(TrustStore::ofUser()->directory(), "/home/ann/.config/lathe");
  ::setenv("XDG_CONFIG_HOME", "relative", 1);
  EXPECT_EQ(TrustStore::ofUser()->directory(), "/home/ann/.config/lathe");
  ::setenv("XDG_CONFIG_HOME", "/xdg", 1);
  EXPECT_EQ(TrustStore::ofUser()->directory(), "/xdg/lathe");
  ::unsetenv("XDG_CONFIG_HOME");
  ::setenv("HOME", "", 1);
  EXPECT_FALSE(TrustStore::ofUser());
}

void compile(const std::string &path) {
  auto store = TrustStore::ofUser();
  ASSERT_TRUE(store);
  auto key = store->ownKey();
  ASSERT_TRUE(key) << key.error().message;
  codegen::WriteOptions options;
  options.signer = &*key;
  ASSERT_TRUE(codegen::writeEngine(path, tinyDescription(), options));
}

TEST(Trust, CompilesAsOneUserAndServesAsAnother) {
  TempDir ann, bob, shared;
  std::string path = shared.path("model.lathe");
  std::string key;
  {
    User user(ann);
    compile(path);
    auto engine = openOrFail(path, {});
    ASSERT_TRUE(engine);
    EXPECT_EQ(engine->trust().state, TrustState::Own);
    EXPECT_TRUE(engine->loadCode(0, runtime::CpuFeatures()));
    key = engine->trust().key.text();
  }
  {
    User user(bob);
    auto engine = openOrFail(path, {});
    ASSERT_TRUE(engine);
    EXPECT_EQ(engine->trust().state, TrustState::Unknown);
    EXPECT_EQ(engine->trust().key.text(), key);
    // Looking is free, running is not.
    EXPECT_TRUE(engine->ir("plan-memory"));
    EXPECT_TRUE(engine->tokenizer());
    auto code = engine->loadCode(0, runtime::CpuFeatures());
    ASSERT_FALSE(code);
    EXPECT_EQ(code.error().kind, ErrorKind::Untrusted);
    EXPECT_THAT(code.error().message, AllOf(HasSubstr("model.lathe: "),
                                            HasSubstr("lathe trust add " + key),
                                            HasSubstr("--trust-code"),
                                            testing::Not(HasSubstr("\n"))));
    // Bob has made no key by looking.
    EXPECT_FALSE(*TrustStore::ofUser()->ownPublicKey());

    OpenOptions options;
    options.trustCode = true;
    EXPECT_TRUE(openOrFail(path, options)->loadCode(0, runtime::CpuFeatures()));

    auto store = TrustStore::ofUser();
    ASSERT_TRUE(store->accept(*PublicKey::parse(key), "Ann"));
    engine = openOrFail(path, {});
    EXPECT_EQ(engine->trust().state, TrustState::Accepted);
    EXPECT_TRUE(engine->loadCode(0, runtime::CpuFeatures()));
  }
}

TEST(Trust, UnsignedCodeIsNotRun) {
  TempDir home, shared;
  User user(home);
  std::string path = shared.path("model.lathe");
  ASSERT_TRUE(codegen::writeEngine(path, tinyDescription()));
  auto engine = openOrFail(path, {});
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->trust().state, TrustState::Unsigned);
  auto code = engine->loadCode(0, runtime::CpuFeatures());
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().kind, ErrorKind::Untrusted);
  EXPECT_THAT(code.error().message,
              AllOf(HasSubstr("not signed"), HasSubstr("--trust-code")));
}

/// Rewrites the trailer so that its check sum fits again.
Bytes withTrailer(Bytes file,
                  const std::function<void(runtime::EngineTrailer &)> &change) {
  auto last = std::span(file).last(runtime::engineTrailerBytes);
  auto trailer = *runtime::decodeTrailer(last);
  change(trailer);
  auto bytes = runtime::encodeTrailer(trailer);
  std::copy(bytes.begin(), bytes.end(), last.begin());
  return file;
}

TEST(Trust, ChangedEnginesAndForgedSignaturesAreBad) {
  TempDir home, shared;
  User user(home);
  compile(shared.path("model.lathe"));
  Bytes whole = readBytes(shared.path("model.lathe"));

  // An attacker changes the manifest, fixes all hashes and keeps the signature
  // and the key of the victim.
  auto trailer = *runtime::decodeTrailer(
      std::span(whole).last(runtime::engineTrailerBytes));
  Bytes changed = withTrailer(withFields(whole,
                                         [](fb::ManifestT &manifest) {
                                           manifest.model->name = "evil";
                                         }),
                              [&](runtime::EngineTrailer &forged) {
                                forged.kind = trailer.kind;
                                forged.key = trailer.key;
                                forged.signature = trailer.signature;
                              });
  // Or gives the signature of a key of their own out for the victim's.
  auto other = SigningKey::generate();
  Bytes forged = withTrailer(whole, [&](runtime::EngineTrailer &trailer) {
    trailer.signature = *other->sign(runtime::signedMessage(trailer.digest));
  });
  // Or signs the bare digest, as another program might be made to do.
  Bytes bare = withTrailer(whole, [&](runtime::EngineTrailer &trailer) {
    trailer.key = other->publicKey().bytes;
    trailer.signature = *other->sign(trailer.digest);
  });
  for (const Bytes &file : {changed, forged, bare}) {
    std::string path = shared.write("bad.lathe", file);
    auto engine = openOrFail(path, {});
    ASSERT_TRUE(engine);
    EXPECT_EQ(engine->trust().state, TrustState::Bad);
    for (bool trustCode : {false, true}) {
      OpenOptions options;
      options.trustCode = trustCode;
      auto code =
          openOrFail(path, options)->loadCode(0, runtime::CpuFeatures());
      ASSERT_FALSE(code);
      EXPECT_EQ(code.error().kind, ErrorKind::Untrusted);
      EXPECT_THAT(code.error().message, HasSubstr("changed after"));
    }
  }
}

TEST(Trust, ChangedCodeIsNotRunWhoeverSigned) {
  TempDir home, shared;
  User user(home);
  compile(shared.path("model.lathe"));
  Bytes file = readBytes(shared.path("model.lathe"));
  auto engine = openOrFail(shared.path("model.lathe"), {});
  const fb::Manifest &manifest = engine->manifest();
  const fb::Section &code =
      *(*manifest.sections())[(*manifest.targets())[0]->code()];
  file[code.offset() + code.bytes() / 2] ^= 1;
  OpenOptions options;
  options.trustCode = true;
  auto loaded = openOrFail(shared.write("m.lathe", file), options)
                    ->loadCode(0, runtime::CpuFeatures());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::InvalidInput);
  EXPECT_THAT(loaded.error().message, HasSubstr("section Code 'cpu:generic'"));
}

TEST(Trust, UnreadableKeysAreToldWhereTheyMatter) {
  TempDir home, shared;
  User user(home);
  compile(shared.path("model.lathe"));
  ASSERT_EQ(::chmod(home.path("lathe/signing-key").c_str(), 0644), 0);
  auto engine = openOrFail(shared.path("model.lathe"), {});
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->trust().state, TrustState::Unknown);
  auto code = engine->loadCode(0, runtime::CpuFeatures());
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message, HasSubstr("chmod 600"));
}

} // namespace
} // namespace lathe::tests

// Damage to engines, with the check sums mended behind it, so that it reaches
// the readers and not only the hashes.

#include "runtime/engine/Engine.h"
#include "tests/fuzz/mutations/Mutate.h"

#include <cstdio>
#include <fstream>

using namespace lathe;
using namespace lathe::tests;
using namespace lathe::runtime;
namespace fb = lathe::engine::fb;

namespace {

/// A section, and where the manifest (by offset in it) tells about it.
struct SectionPlace {
  size_t offset;
  size_t bytes;
  size_t rawBytesField; ///< 0: not stated.
  size_t hash;          ///< 0: none.
};

class EngineMutator : public Mutator {
public:
  EngineMutator(Bytes file, const Engine &engine)
      : original(std::move(file)), header(*decodeHeader(original)) {
    const fb::Manifest &manifest = engine.manifest();
    for (const fb::Section *section : *manifest.sections()) {
      SectionPlace place{section->offset(), section->bytes(), 0, 0};
      const auto *table = reinterpret_cast<const flatbuffers::Table *>(section);
      place.rawBytesField =
          placeOf(manifest, table->GetAddressOf(fb::Section::VT_RAW_BYTES));
      if (section->sha256() && section->sha256()->size() == 32)
        place.hash = placeOf(manifest, section->sha256()->data());
      if (place.bytes > 0)
        sections.push_back(place);
    }
  }

  Bytes mutation(uint64_t number) const override {
    Dice dice(number);
    switch (dice.roll(8)) {
    case 0:
      return breakFile(dice);
    case 1:
      return breakHeader(dice);
    case 2:
    case 3:
      return breakSection(dice);
    default:
      return breakManifest(dice);
    }
  }

private:
  /// Where in the manifest an address inside it lies; 0 for null. The reader
  /// holds a copy, in which `manifest` is where the first field says.
  size_t placeOf(const fb::Manifest &manifest, const uint8_t *address) const {
    if (!address)
      return 0;
    uint32_t rootOffset = 0;
    std::memcpy(&rootOffset, &original[header.manifestOffset], 4);
    const auto *root = reinterpret_cast<const uint8_t *>(&manifest);
    return size_t(address - root) + rootOffset;
  }

  /// Anything, nothing mended.
  Bytes breakFile(Dice &dice) const {
    Bytes bytes = original;
    for (uint64_t n = 1 + dice.roll(3); n > 0 && !bytes.empty(); --n) {
      size_t parts[][2] = {
          {0, engineHeaderBytes},
          {header.manifestOffset, header.manifestOffset + header.manifestBytes},
          {original.size() - engineTrailerBytes, original.size()},
          {0, original.size()}};
      auto [begin, end] = parts[dice.roll(4)];
      end = std::min(end, bytes.size());
      if (begin < end)
        breakBytes(dice, bytes, begin, end, false);
    }
    return bytes;
  }

  /// Hostile fields under a right check sum.
  Bytes breakHeader(Dice &dice) const {
    EngineHeader changed = header;
    uint64_t *fields[] = {&changed.fileBytes, &changed.manifestOffset,
                          &changed.manifestBytes};
    for (uint64_t n = 1 + dice.roll(2); n > 0; --n) {
      uint64_t &field = *fields[dice.roll(3)];
      field = hostileNumber(dice, field);
    }
    Bytes bytes = original;
    auto encoded = encodeHeader(changed);
    std::copy(encoded.begin(), encoded.end(), bytes.begin());
    return bytes;
  }

  Bytes breakManifest(Dice &dice) const {
    Bytes manifest(original.begin() + std::ptrdiff_t(header.manifestOffset),
                   original.end() - std::ptrdiff_t(engineTrailerBytes));
    for (uint64_t n = 1 + dice.roll(3); n > 0; --n) {
      size_t word = dice.roll(manifest.size() / 4) * 4;
      switch (dice.roll(4)) {
      case 0: // As one of the offsets, lengths and numbers.
        breakField(dice, manifest, word, 4);
        break;
      case 1: // As a 64-bit number, or a field's place in a table.
        breakField(dice, manifest, word, dice.oneIn(2) ? 8 : 2);
        break;
      case 2: { // One number in another's place.
        size_t other = dice.roll(manifest.size() / 4) * 4;
        std::memcpy(&manifest[word], &manifest[other], 4);
        break;
      }
      case 3:
        breakBytes(dice, manifest, 0, manifest.size(), true);
        break;
      }
    }
    if (dice.oneIn(8))
      breakBytes(dice, manifest, 0, manifest.size(), false);
    return assembled(original, manifest);
  }

  /// A section's bytes, and sometimes the size that it shall unpack to.
  Bytes breakSection(Dice &dice) const {
    Bytes bytes = original;
    const SectionPlace &section = sections[dice.roll(sections.size())];
    for (uint64_t n = 1 + dice.roll(3); n > 0; --n) {
      size_t at = section.offset + dice.roll(section.bytes);
      size_t end = section.offset + section.bytes;
      if (dice.oneIn(2))
        breakField(dice, bytes, at, std::min<size_t>(4, end - at));
      else
        breakBytes(dice, bytes, section.offset, end, true);
    }
    Bytes manifest(bytes.begin() + std::ptrdiff_t(header.manifestOffset),
                   bytes.end() - std::ptrdiff_t(engineTrailerBytes));
    if (section.rawBytesField && dice.oneIn(4))
      breakField(dice, manifest, section.rawBytesField, 8);
    if (section.hash) {
      auto hash = Sha256::digest({&bytes[section.offset], section.bytes});
      std::copy(hash.begin(), hash.end(), &manifest[section.hash]);
    }
    return assembled(std::move(bytes), manifest);
  }

  /// `bytes` with another manifest, and a header and trailer that fit.
  Bytes assembled(Bytes bytes, const Bytes &manifest) const {
    bytes.resize(header.manifestOffset);
    bytes.insert(bytes.end(), manifest.begin(), manifest.end());
    auto encodedHeader = encodeHeader({bytes.size() + engineTrailerBytes,
                                       header.manifestOffset, manifest.size()});
    std::copy(encodedHeader.begin(), encodedHeader.end(), bytes.begin());
    EngineTrailer trailer;
    trailer.digest = manifestDigest(encodedHeader, manifest);
    auto encodedTrailer = encodeTrailer(trailer);
    bytes.insert(bytes.end(), encodedTrailer.begin(), encodedTrailer.end());
    return bytes;
  }

  Bytes original;
  EngineHeader header;
  std::vector<SectionPlace> sections;
};

} // namespace

std::unique_ptr<Mutator> tests::makeEngineMutator(const std::string &path) {
  OpenOptions options;
  options.trust = TrustStore("/nonexistent");
  auto engine = Engine::open(path, options);
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return nullptr;
  }
  std::ifstream in(path, std::ios::binary);
  Bytes file{std::istreambuf_iterator<char>(in), {}};
  return std::make_unique<EngineMutator>(std::move(file), **engine);
}

#include "runtime/engine/Engine.h"
#include "runtime/engine/Validate.h"
#include "runtime/support/Quote.h"

#include <algorithm>
#include <cstring>

namespace lathe::runtime {

namespace fb = engine::fb;

namespace {

/// Names of the weights that lie in [from, to) of their section.
std::string weightsIn(const fb::Manifest &manifest, uint64_t from,
                      uint64_t to) {
  constexpr unsigned most = 8;
  std::string names;
  unsigned count = 0;
  for (const fb::Weight *weight : *manifest.weights()) {
    if (weight->offset() >= to || weight->offset() + weight->bytes() <= from)
      continue;
    if (++count <= most)
      names += (count > 1 ? ", " : "") + quoted(viewOf(weight->name()));
  }
  if (count > most)
    names += fmt::format(" and {} more", count - most);
  return names;
}

} // namespace

Result<void> Engine::checkHash(const fb::Section &section,
                               std::span<const uint8_t> bytes) const {
  Sha256::Digest found = Sha256::digest(bytes);
  Sha256::Digest expected;
  std::copy_n(section.sha256()->begin(), expected.size(), expected.begin());
  if (found == expected)
    return {};
  std::string_view name = viewOf(section.name());
  return failHere(
      {ErrorKind::InvalidInput,
       fmt::format("section {}{}{} is damaged: its hash is {}…, expected {}…; "
                   "copy the file again or compile the model again",
                   fb::EnumNameSectionKind(section.kind()),
                   name.empty() ? "" : " ", name.empty() ? "" : quoted(name),
                   Sha256::toHex(found).substr(0, 16),
                   Sha256::toHex(expected).substr(0, 16))});
}

Result<void> Engine::verifySections() const {
  for (const fb::Section *section : *root->sections())
    if (section->kind() != fb::SectionKind::Weights)
      if (auto right = checkHash(*section, bytesOf(*section)); !right)
        return right;
  return {};
}

Result<void> Engine::verifyWeights(const ByteProgress &progress) const {
  const fb::Section *hashSection = nullptr;
  for (const fb::Section *section : *root->sections())
    if (section->kind() == fb::SectionKind::ChunkHashes)
      hashSection = section;
  auto hashes = checkedCopy(*hashSection);
  if (!hashes)
    return failFrom(hashes);

  std::span<const uint8_t> bytes = weights();
  for (uint64_t at = 0, chunk = 0; at < bytes.size(); ++chunk) {
    uint64_t size = std::min<uint64_t>(weightChunkBytes, bytes.size() - at);
    Sha256::Digest found = Sha256::digest(bytes.subspan(at, size));
    if (std::memcmp(found.data(), hashes->data() + chunk * found.size(),
                    found.size()) != 0) {
      uint64_t start = uint64_t(bytes.data() - file.bytes().data()) + at;
      return failHere(
          {ErrorKind::InvalidInput,
           fmt::format("chunk {} of the weights (bytes {} to {} of the file) "
                       "is damaged: its hash is not the one noted when it was "
                       "made; it holds {}; copy the file again or compile the "
                       "model again",
                       chunk, start, start + size - 1,
                       weightsIn(*root, at, at + size))});
    }
    at += size;
    if (progress)
      progress(at, bytes.size());
  }
  return {};
}

} // namespace lathe::runtime

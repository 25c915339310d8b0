#include "codegen/engine/SectionStream.h"

#include "runtime/engine/FileLayout.h"
#include "runtime/support/Checked.h"
#include "runtime/support/Quote.h"

#include <algorithm>
#include <array>
#include <zstd.h>

namespace lathe::codegen {

using namespace runtime;
namespace fb = engine::fb;

namespace {

/// Text is written once and read rarely, but compiling waits for it.
constexpr int compressionLevel = 9;

std::vector<uint8_t> toVector(const Sha256::Digest &digest) {
  return {digest.begin(), digest.end()};
}

} // namespace

Result<void> SectionStream::align(uint64_t alignment) {
  static constexpr std::array<uint8_t, sectionAlignment> zeros = {};
  auto end = checkedAlign(file.size(), alignment);
  if (!end)
    return fail(ErrorKind::Exhausted, "the engine is too large");
  return file.append(std::span(zeros).first(*end - file.size()));
}

Result<fb::SectionT *> SectionStream::begin(fb::SectionKind kind,
                                            std::string_view name) {
  if (auto aligned = align(sectionAlignment); !aligned)
    return failFrom(aligned);
  auto section = std::make_unique<fb::SectionT>();
  section->kind = kind;
  section->name = name;
  section->offset = file.size();
  sections.push_back(std::move(section));
  return sections.back().get();
}

Result<uint32_t> SectionStream::add(fb::SectionKind kind, std::string_view name,
                                    std::span<const uint8_t> bytes) {
  auto section = begin(kind, name);
  if (!section)
    return failFrom(section);
  (*section)->bytes = bytes.size();
  (*section)->raw_bytes = bytes.size();
  (*section)->sha256 = toVector(Sha256::digest(bytes));
  if (auto written = file.append(bytes); !written)
    return failFrom(written);
  return uint32_t(sections.size() - 1);
}

Result<uint32_t> SectionStream::addText(fb::SectionKind kind,
                                        std::string_view name,
                                        std::string_view text) {
  if (text.size() > maxTextBytes)
    return fail(
        ErrorKind::Exhausted, "the {} {} has {} bytes, expected at most {}",
        fb::EnumNameSectionKind(kind), quoted(name), text.size(), maxTextBytes);
  std::vector<uint8_t> packed(ZSTD_compressBound(text.size()));
  size_t size = ZSTD_compress(packed.data(), packed.size(), text.data(),
                              text.size(), compressionLevel);
  if (ZSTD_isError(size))
    return fail(ErrorKind::Exhausted, "cannot compress the {} {}: {}",
                fb::EnumNameSectionKind(kind), quoted(name),
                ZSTD_getErrorName(size));
  packed.resize(size);
  auto index = add(kind, name, packed);
  if (index)
    sections[*index]->raw_bytes = text.size();
  return index;
}

Result<void> SectionStream::beginWeights() {
  chunk.reserve(weightChunkBytes);
  auto section = begin(fb::SectionKind::Weights, "");
  return section ? Result<void>() : failFrom(section);
}

Result<void> SectionStream::appendWeights(std::span<const uint8_t> bytes) {
  weightsSize += bytes.size();
  while (!bytes.empty()) {
    size_t part =
        std::min<size_t>(bytes.size(), weightChunkBytes - chunk.size());
    chunk.insert(chunk.end(), bytes.begin(), bytes.begin() + part);
    bytes = bytes.subspan(part);
    if (chunk.size() == weightChunkBytes)
      if (auto flushed = flushChunk(); !flushed)
        return flushed;
  }
  return {};
}

Result<void> SectionStream::flushChunk() {
  Sha256::Digest digest = Sha256::digest(chunk);
  hashes.insert(hashes.end(), digest.begin(), digest.end());
  auto written = file.append(chunk);
  chunk.clear();
  return written;
}

Result<void> SectionStream::endWeights() {
  if (!chunk.empty())
    if (auto flushed = flushChunk(); !flushed)
      return flushed;
  sections.back()->bytes = weightsSize;
  sections.back()->raw_bytes = weightsSize;
  auto added = add(fb::SectionKind::ChunkHashes, "", hashes);
  if (!added)
    return failFrom(added);
  root = sections[*added]->sha256;
  return {};
}

} // namespace lathe::codegen

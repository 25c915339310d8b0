/// \file
/// The sections of an engine being written; private to this folder.
#ifndef LATHE_CODEGEN_ENGINE_SECTIONSTREAM_H
#define LATHE_CODEGEN_ENGINE_SECTIONSTREAM_H

#include "codegen/engine/engine_generated.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Result.h"
#include "runtime/support/Sha256.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::codegen {

/// Appends page-aligned sections to a file and notes where they are and what
/// their hashes are. The space for the header is left free.
class SectionStream {
public:
  using Sections = std::vector<std::unique_ptr<engine::fb::SectionT>>;

  explicit SectionStream(runtime::AtomicFile &file) : file(file) {}

  /// Starts the section of all weights, to be filled by appendWeights().
  runtime::Result<void> beginWeights();
  /// Appends bytes of weights, hashed and written 1 MiB at a time.
  runtime::Result<void> appendWeights(std::span<const uint8_t> bytes);
  /// Ends the weights and writes the section of their chunk hashes.
  runtime::Result<void> endWeights();
  /// Bytes of weights so far.
  uint64_t weightBytes() const { return weightsSize; }
  /// SHA-256 over the chunk hashes, after endWeights().
  const std::vector<uint8_t> &weightsRoot() const { return root; }

  /// Writes a whole section and returns its index.
  runtime::Result<uint32_t> add(engine::fb::SectionKind kind,
                                std::string_view name,
                                std::span<const uint8_t> bytes);
  /// Writes text, compressed.
  runtime::Result<uint32_t> addText(engine::fb::SectionKind kind,
                                    std::string_view name,
                                    std::string_view text);

  /// Fills the file with zeros up to a multiple of `alignment`.
  runtime::Result<void> align(uint64_t alignment);

  /// What was written; call last.
  Sections take() { return std::move(sections); }

private:
  runtime::Result<engine::fb::SectionT *> begin(engine::fb::SectionKind kind,
                                                std::string_view name);
  runtime::Result<void> flushChunk();

  runtime::AtomicFile &file;
  Sections sections;
  std::vector<uint8_t> chunk;
  std::vector<uint8_t> hashes;
  std::vector<uint8_t> root;
  uint64_t weightsSize = 0;
};

} // namespace lathe::codegen

#endif // LATHE_CODEGEN_ENGINE_SECTIONSTREAM_H

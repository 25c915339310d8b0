/// \file
/// An engine file, opened: what is in it, checked, and its code, loaded.
#ifndef LATHE_RUNTIME_ENGINE_ENGINE_H
#define LATHE_RUNTIME_ENGINE_ENGINE_H

#include "codegen/engine/engine_generated.h"
#include "runtime/device/CpuFeatures.h"
#include "runtime/engine/CpuCode.h"
#include "runtime/engine/Ed25519.h"
#include "runtime/engine/FileLayout.h"
#include "runtime/engine/TrustStore.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Result.h"
#include "runtime/text/TokenizerSpec.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// What an engine's signature says about its code.
enum class TrustState {
  Own,      ///< Signed with this user's key.
  Accepted, ///< Signed with a key that the user has accepted.
  Unknown,  ///< Validly signed with another key.
  Unsigned,
  Bad, ///< Has a signature that does not fit: changed after it was signed.
};

struct Trust {
  TrustState state = TrustState::Unsigned;
  /// Who signed; set in Own, Accepted and Unknown.
  PublicKey key;
  /// Why the user's own or accepted keys could not be read; usually empty.
  std::string problem;
};

struct OpenOptions {
  /// Run the engine's code whoever made it (`--trust-code`).
  bool trustCode = false;
  /// Where the user's keys are; nothing: TrustStore::ofUser().
  std::optional<TrustStore> trust;
};

/// Bytes done and bytes in all.
using ByteProgress = std::function<void(uint64_t done, uint64_t total)>;

/// An opened engine. Immutable: any number of threads may use it at once.
/// Everything that it hands out by reference or span lives as long as it does.
/// Every error names the file and the item and says what was expected, what was
/// found and what to do.
///
/// The file is mapped; a file that another process cuts while it is mapped
/// makes reads of its weights fail with SIGBUS (MappedFile). Manifest and code
/// are copied before they are checked, so that later changes cannot matter.
class Engine {
public:
  /// Opens and checks an engine: header, trailer, manifest and its hash, the
  /// zero bytes between sections. Reads no section, runs nothing. Errors: those
  /// of MappedFile::open, InvalidInput (damaged, cut, not an engine),
  /// Unsupported (another version's).
  static Result<std::shared_ptr<const Engine>>
  open(const std::string &path, const OpenOptions &options = {});

  const std::string &path() const { return file.path(); }
  uint64_t fileBytes() const { return file.size(); }

  /// The manifest, fully checked (docs/engine-format.md, "What a reader
  /// checks"): its indices, offsets and sizes may be used as they are.
  const engine::fb::Manifest &manifest() const { return *root; }

  /// The weights section: the base of space `weights` of a step. Mapped; its
  /// content is only checked by verifyWeights().
  std::span<const uint8_t> weights() const;

  /// Stands for the whole file (FileLayout.h, manifestDigest()), whoever signed
  /// it: two engines of one digest give the same bits on one target.
  const Sha256::Digest &digest() const { return fileDigest; }

  /// Who made the code.
  const Trust &trust() const { return origin; }

  /// The target to run on a CPU with these features, as an index into
  /// manifest().targets(): the best ISA layer that fits, or the one that
  /// `forced` or, if that is empty, the environment variable LATHE_ISA names
  /// ("avx2" or "cpu:avx2"). Errors: Environment, listing what the file has and
  /// what the CPU lacks; Unsupported (built for another step ABI).
  Result<uint32_t> selectTarget(const CpuFeatures &cpu,
                                std::string_view forced = {}) const;

  /// Loads the code of a target (< manifest().targets()->size()). Errors:
  /// Untrusted, naming the key and the command that accepts it; Environment (a
  /// CPU feature is missing); Unsupported (another step ABI); InvalidInput
  /// (damaged, not loadable).
  Result<CpuCode> loadCode(uint32_t target, const CpuFeatures &cpu) const;

  /// Names of the phases whose IR is in the file, in order.
  std::vector<std::string> phases() const;

  /// The IR after a phase, as text. Errors: NotFound, listing the phases;
  /// InvalidInput (damaged).
  Result<std::string> ir(std::string_view phase) const;

  /// The printed kernel sources of a target (< number of targets). Errors:
  /// InvalidInput (damaged).
  Result<std::string> sources(uint32_t target) const;

  /// The tokenizer. Errors: NotFound (the model came without one), InvalidInput
  /// (damaged).
  Result<TokenizerSpec> tokenizer() const;

  /// Hashes every section but the weights. Errors: InvalidInput, naming the
  /// section.
  Result<void> verifySections() const;

  /// Hashes the weights, chunk by chunk. Errors: InvalidInput, naming the chunk
  /// and the tensors in it.
  Result<void> verifyWeights(const ByteProgress &progress = {}) const;

private:
  Engine() = default;
  Result<EngineTrailer> read();
  Result<void> checkGaps(uint64_t manifestOffset) const;
  void judge(const OpenOptions &options, const EngineTrailer &trailer);

  const engine::fb::Section *section(engine::fb::SectionKind kind,
                                     std::string_view name = {}) const;
  std::span<const uint8_t> bytesOf(const engine::fb::Section &section) const;
  Result<void> checkHash(const engine::fb::Section &section,
                         std::span<const uint8_t> bytes) const;
  /// A copy of a section whose hash is right.
  Result<std::vector<uint8_t>>
  checkedCopy(const engine::fb::Section &section) const;
  Result<std::string> unpackText(const engine::fb::Section &section) const;
  Result<void> checkTrust() const;
  Result<void> checkStepAbi() const;
  /// An error of this file.
  tl::unexpected<Error> failHere(Error error) const;

  MappedFile file;
  std::vector<uint64_t> manifestBytes; ///< uint64_t for its alignment.
  const engine::fb::Manifest *root = nullptr;
  Sha256::Digest fileDigest = {};
  Trust origin;
  bool trustCode = false;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_ENGINE_ENGINE_H

/// \file
/// The fixed parts of an engine file: its header, its trailer and the constants
/// that place everything between them (docs/engine-format.md). Integers are
/// little-endian.
#ifndef LATHE_RUNTIME_ENGINE_FILELAYOUT_H
#define LATHE_RUNTIME_ENGINE_FILELAYOUT_H

#include "runtime/support/Result.h"
#include "runtime/support/Sha256.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace lathe::runtime {

/// The first bytes of every engine file. As in PNG, a transfer that drops the
/// eighth bit or rewrites line ends spoils them.
inline constexpr std::array<uint8_t, 8> engineMagic = {0x89, 'L',  'T',  'H',
                                                       'E',  '\r', '\n', 0x1a};
inline constexpr std::array<uint8_t, 8> trailerMagic = {'L', 'T', 'H', 'E',
                                                        'S', 'I', 'G', '\n'};

/// Version of the header and trailer; another one means another file.
inline constexpr uint32_t engineHeaderVersion = 1;
/// Version of the manifest that this reader knows. A writer that adds fields
/// which old readers may ignore raises format_version only; one that adds what
/// they must not ignore raises min_reader too.
inline constexpr uint32_t engineFormatVersion = 2;
/// The oldest that it still reads: 1 had other packed K-quants.
inline constexpr uint32_t oldestFormatVersion = 2;

inline constexpr uint64_t engineHeaderBytes = 64;
inline constexpr uint64_t engineTrailerBytes = 176;
/// Sections start at multiples of this.
inline constexpr uint64_t sectionAlignment = 4096;
/// The manifest starts at a multiple of this.
inline constexpr uint64_t manifestAlignment = 64;
/// Weights start at multiples of this in their section.
inline constexpr uint64_t weightAlignment = 64;
/// The weights section is hashed in chunks of this size; the last is shorter.
inline constexpr uint64_t weightChunkBytes = uint64_t(1) << 20;

/// Most bytes of a manifest, of a text after decompression, and of a tokenizer.
inline constexpr uint64_t maxManifestBytes = uint64_t(64) << 20;
inline constexpr uint64_t maxTextBytes = uint64_t(64) << 20;
inline constexpr uint64_t maxTokenizerBytes = uint64_t(256) << 20;

/// What the first 64 bytes say.
struct EngineHeader {
  uint64_t fileBytes = 0;
  uint64_t manifestOffset = 0;
  uint64_t manifestBytes = 0;
};

/// How the manifest is signed.
enum class SignatureKind : uint32_t { None = 0, Ed25519 = 1 };

/// The last 176 bytes.
struct EngineTrailer {
  SignatureKind kind = SignatureKind::None;
  /// manifestDigest() of the file; what is signed.
  Sha256::Digest digest = {};
  /// Zero if unsigned.
  std::array<uint8_t, 32> key = {};
  std::array<uint8_t, 64> signature = {};
};

/// Writes a header as it stands in the file.
std::array<uint8_t, engineHeaderBytes> encodeHeader(const EngineHeader &header);

/// Reads the header of a file of `file.size()` bytes and checks that header,
/// manifest and trailer fit it exactly. Errors say what was expected, found and
/// what to do; they do not name the file.
Result<EngineHeader> decodeHeader(std::span<const uint8_t> file);

/// Writes a trailer, its own check sum included.
std::array<uint8_t, engineTrailerBytes>
encodeTrailer(const EngineTrailer &trailer);

/// Reads the last engineTrailerBytes bytes of a file. Errors as decodeHeader.
Result<EngineTrailer> decodeTrailer(std::span<const uint8_t> bytes);

/// SHA-256 over the header's and then the manifest's bytes. Since the manifest
/// holds the hashes of all sections, this stands for the whole file.
Sha256::Digest manifestDigest(std::span<const uint8_t> header,
                              std::span<const uint8_t> manifest);

/// What a signature covers: the digest behind a prefix that makes it mean
/// nothing outside of engines.
std::vector<uint8_t> signedMessage(const Sha256::Digest &digest);

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_ENGINE_FILELAYOUT_H

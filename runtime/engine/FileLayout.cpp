#include "runtime/engine/FileLayout.h"

#include "runtime/support/Checked.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

namespace lathe::runtime {

namespace {

static_assert(std::endian::native == std::endian::little,
              "engine files are little-endian");

/// Where the fields of the header lie; the bytes from 40 on are zero.
constexpr size_t headerVersionAt = 8;
constexpr size_t headerSizeAt = 12;
constexpr size_t fileBytesAt = 16;
constexpr size_t manifestOffsetAt = 24;
constexpr size_t manifestBytesAt = 32;

/// Where the fields of the trailer lie.
constexpr size_t trailerVersionAt = 8;
constexpr size_t signatureKindAt = 12;
constexpr size_t digestAt = 16;
constexpr size_t keyAt = 48;
constexpr size_t signatureAt = 80;
constexpr size_t checkSumAt = 144;
static_assert(checkSumAt + sizeof(Sha256::Digest) == engineTrailerBytes);

template <typename T> void put(uint8_t *to, const T &value) {
  std::memcpy(to, &value, sizeof(T));
}

template <typename T> T get(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

constexpr const char *copyAgain = "copy the file again or compile the model "
                                  "again";

} // namespace

std::array<uint8_t, engineHeaderBytes>
encodeHeader(const EngineHeader &header) {
  std::array<uint8_t, engineHeaderBytes> bytes = {};
  put(bytes.data(), engineMagic);
  put(bytes.data() + headerVersionAt, engineHeaderVersion);
  put(bytes.data() + headerSizeAt, uint32_t(engineHeaderBytes));
  put(bytes.data() + fileBytesAt, header.fileBytes);
  put(bytes.data() + manifestOffsetAt, header.manifestOffset);
  put(bytes.data() + manifestBytesAt, header.manifestBytes);
  return bytes;
}

Result<EngineHeader> decodeHeader(std::span<const uint8_t> file) {
  size_t magicBytes = std::min(file.size(), engineMagic.size());
  if (magicBytes == 0 ||
      !std::equal(engineMagic.begin(), engineMagic.begin() + magicBytes,
                  file.begin()))
    return fail(ErrorKind::InvalidInput,
                "not an engine file: it does not start with the bytes of one; "
                "expected a file made by `lathe compile`");
  if (file.size() < engineHeaderBytes + engineTrailerBytes)
    return fail(ErrorKind::InvalidInput,
                "the file is cut: an engine has at least {} bytes, found {}; "
                "{}",
                engineHeaderBytes + engineTrailerBytes, file.size(), copyAgain);
  uint32_t version = get<uint32_t>(&file[headerVersionAt]);
  if (version != engineHeaderVersion)
    return fail(ErrorKind::Unsupported,
                "the header's version is {}, expected {}: another version of "
                "lathe made it; use that one or compile the model again",
                version, engineHeaderVersion);
  uint32_t headerSize = get<uint32_t>(&file[headerSizeAt]);
  if (headerSize != engineHeaderBytes)
    return fail(ErrorKind::InvalidInput,
                "the header says that it has {} bytes, expected {}; {}",
                headerSize, engineHeaderBytes, copyAgain);

  EngineHeader header;
  header.fileBytes = get<uint64_t>(&file[fileBytesAt]);
  header.manifestOffset = get<uint64_t>(&file[manifestOffsetAt]);
  header.manifestBytes = get<uint64_t>(&file[manifestBytesAt]);
  if (header.fileBytes != file.size())
    return fail(ErrorKind::InvalidInput,
                "the header says {} bytes, the file has {}: it is cut or "
                "damaged; {}",
                header.fileBytes, file.size(), copyAgain);
  uint64_t trailerOffset = file.size() - engineTrailerBytes;
  if (header.manifestBytes > maxManifestBytes ||
      header.manifestOffset < engineHeaderBytes ||
      header.manifestOffset % manifestAlignment != 0 ||
      !rangeFits(header.manifestOffset, header.manifestBytes, trailerOffset) ||
      header.manifestOffset + header.manifestBytes != trailerOffset)
    return fail(ErrorKind::InvalidInput,
                "the header places the manifest at {} + {} bytes, expected it "
                "to end at {}; {}",
                header.manifestOffset, header.manifestBytes, trailerOffset,
                copyAgain);
  return header;
}

std::array<uint8_t, engineTrailerBytes>
encodeTrailer(const EngineTrailer &trailer) {
  std::array<uint8_t, engineTrailerBytes> bytes = {};
  put(bytes.data(), trailerMagic);
  put(bytes.data() + trailerVersionAt, engineHeaderVersion);
  put(bytes.data() + signatureKindAt, uint32_t(trailer.kind));
  put(bytes.data() + digestAt, trailer.digest);
  put(bytes.data() + keyAt, trailer.key);
  put(bytes.data() + signatureAt, trailer.signature);
  put(bytes.data() + checkSumAt,
      Sha256::digest(std::span(bytes).first(checkSumAt)));
  return bytes;
}

Result<EngineTrailer> decodeTrailer(std::span<const uint8_t> bytes) {
  if (bytes.size() != engineTrailerBytes ||
      !std::equal(trailerMagic.begin(), trailerMagic.end(), bytes.begin()) ||
      Sha256::digest(bytes.first(checkSumAt)) !=
          get<Sha256::Digest>(&bytes[checkSumAt]))
    return fail(ErrorKind::InvalidInput,
                "the signature trailer is damaged: its check sum does not "
                "fit; {}",
                copyAgain);
  uint32_t version = get<uint32_t>(&bytes[trailerVersionAt]);
  uint32_t kind = get<uint32_t>(&bytes[signatureKindAt]);
  if (version != engineHeaderVersion || kind > uint32_t(SignatureKind::Ed25519))
    return fail(ErrorKind::Unsupported,
                "the signature trailer is of version {} and kind {}, expected "
                "version {} and kind 0 or 1; use the lathe that made it or "
                "compile the model again",
                version, kind, engineHeaderVersion);
  EngineTrailer trailer;
  trailer.kind = SignatureKind(kind);
  trailer.digest = get<Sha256::Digest>(&bytes[digestAt]);
  trailer.key = get<std::array<uint8_t, 32>>(&bytes[keyAt]);
  trailer.signature = get<std::array<uint8_t, 64>>(&bytes[signatureAt]);
  return trailer;
}

Sha256::Digest manifestDigest(std::span<const uint8_t> header,
                              std::span<const uint8_t> manifest) {
  Sha256 hash;
  hash.update(header);
  hash.update(manifest);
  return hash.finish();
}

std::vector<uint8_t> signedMessage(const Sha256::Digest &digest) {
  constexpr std::string_view prefix = "lathe engine manifest, version 1\n";
  std::vector<uint8_t> message(prefix.begin(), prefix.end());
  message.insert(message.end(), digest.begin(), digest.end());
  return message;
}

} // namespace lathe::runtime

/// \file
/// Reading GGUF model files (versions 2 and 3, little-endian, one file or
/// split into shards). Format: docs/gguf.md of ggml-org/ggml.
///
/// The file is untrusted. open() checks everything that can be checked without
/// reading the weights, so that every span handed out lies inside the file and
/// every size is consistent; it allocates no more than a small multiple of the
/// header's own size. checkBlocks() looks at the weights' bits.
#ifndef LATHE_FRONTEND_GGUF_GGUFFILE_H
#define LATHE_FRONTEND_GGUF_GGUFFILE_H

#include "kernels/formats/Format.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Result.h"

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::frontend {

/// The type of a metadata value, numbered as in the file.
enum class GgufType : uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64,
};

/// One metadata value: a view into the file. Use the typed getters of GgufFile
/// to read it.
struct GgufValue {
  GgufType type;
  /// For arrays, the type of the elements; otherwise `type`.
  GgufType elementType;
  /// For arrays, the number of elements; otherwise 1.
  uint64_t count;
  /// A scalar's bytes, a string's characters, or an array's stored elements
  /// (strings each with their u64 length in front).
  std::span<const uint8_t> bytes;
};

/// A metadata key and its value, in file order.
struct GgufEntry {
  std::string_view key;
  GgufValue value;
};

/// One tensor: a row-major matrix of rows() × k() elements whose rows lie one
/// after the other.
struct GgufTensor {
  /// Not empty, UTF-8, without control characters.
  std::string_view name;
  /// ggml order: dims[0] is the contiguous one. All >= 1; unused ones are 1.
  std::array<uint64_t, 4> dims;
  /// How many of the dims the file states, 1 to 4.
  uint32_t rank;
  kernels::Format format;
  /// Which file of a split model; 0 for a single file.
  uint32_t shard;
  /// Absolute, in bytes, in the shard's file.
  uint64_t offset;
  /// The tensor's bytes, in the mapped file.
  std::span<const uint8_t> data;

  /// Elements of one row; a multiple of the format's block.
  uint64_t k() const { return dims[0]; }
  /// Product of all other dims.
  uint64_t rows() const { return dims[1] * dims[2] * dims[3]; }
};

/// An open GGUF model. All views it gives live as long as it does, also when it
/// is moved. Any number of threads may use a const GgufFile at once.
///
/// Every error names the file, and the key or tensor at fault.
class GgufFile {
public:
  /// Opens a model. `path` may be any shard of a split model: the others are
  /// found beside it by name (`…-00001-of-00003.gguf`) and opened too.
  static runtime::Result<GgufFile> open(const std::string &path);

  /// The path as given to open().
  const std::string &path() const { return openedPath; }
  /// Number of files: 1 unless split.
  uint32_t shardCount() const { return static_cast<uint32_t>(shards.size()); }
  /// One file's path.
  const std::string &shardPath(uint32_t shard) const {
    return shards[shard].path();
  }
  /// All bytes of one file.
  std::span<const uint8_t> shardBytes(uint32_t shard) const {
    return shards[shard].bytes();
  }
  /// The bytes of one file before its tensor data: what a cache hashes to
  /// recognize a model.
  std::span<const uint8_t> headerBytes(uint32_t shard) const {
    return shards[shard].bytes().first(headerSizes[shard]);
  }

  /// The metadata, in file order; of a split model, that of its first shard.
  std::span<const GgufEntry> entries() const { return entryList; }
  /// The value of a key, or null.
  const GgufValue *find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  /// Typed values. Without a fallback a missing key is NotFound; a key of
  /// another kind of type, or a value out of the range asked for, is
  /// InvalidInput. Integers may be stored in any integer type, floats as f32 or
  /// f64; floats that are infinite or NaN are refused.
  runtime::Result<uint32_t> getU32(std::string_view key) const;
  runtime::Result<uint32_t> getU32(std::string_view key,
                                   uint32_t fallback) const;
  runtime::Result<uint64_t> getU64(std::string_view key) const;
  runtime::Result<uint64_t> getU64(std::string_view key,
                                   uint64_t fallback) const;
  runtime::Result<int64_t> getI64(std::string_view key) const;
  runtime::Result<int64_t> getI64(std::string_view key, int64_t fallback) const;
  runtime::Result<float> getF32(std::string_view key) const;
  runtime::Result<float> getF32(std::string_view key, float fallback) const;
  runtime::Result<bool> getBool(std::string_view key) const;
  runtime::Result<bool> getBool(std::string_view key, bool fallback) const;
  /// Strings are views of the file's bytes, not necessarily UTF-8.
  runtime::Result<std::string_view> getString(std::string_view key) const;
  runtime::Result<std::string_view> getString(std::string_view key,
                                              std::string_view fallback) const;

  /// Arrays, possibly empty; the same rules for elements. Booleans count as
  /// integers 0 and 1 in getI32Array.
  runtime::Result<std::vector<std::string_view>>
  getStringArray(std::string_view key) const;
  runtime::Result<std::vector<int32_t>> getI32Array(std::string_view key) const;
  runtime::Result<std::vector<float>> getF32Array(std::string_view key) const;

  /// A value per layer, which files store as one number for all layers or as an
  /// array of exactly `layers` numbers. `layers` may come from the file: more
  /// than maxLayers is an error.
  runtime::Result<std::vector<uint32_t>> getU32PerLayer(std::string_view key,
                                                        uint32_t layers) const;
  runtime::Result<std::vector<uint32_t>>
  getU32PerLayer(std::string_view key, uint32_t layers,
                 uint32_t fallback) const;
  static constexpr uint32_t maxLayers = 65536;

  /// All tensors, shard by shard in file order.
  std::span<const GgufTensor> tensors() const { return tensorList; }
  /// The tensor of that name, or null.
  const GgufTensor *findTensor(std::string_view name) const;
  /// The tensor of that name; NotFound names it and the file.
  runtime::Result<const GgufTensor *> getTensor(std::string_view name) const;

  /// Reads a tensor's scales (of float formats: all its elements) and fails on
  /// the first that is infinite or NaN, naming tensor and block. Import calls
  /// it for every tensor it uses.
  runtime::Result<void> checkBlocks(const GgufTensor &tensor) const;

private:
  GgufFile() = default;
  runtime::Result<void> checkTokenizer() const;

  std::string openedPath;
  std::vector<runtime::MappedFile> shards;
  std::vector<uint64_t> headerSizes;
  std::vector<GgufEntry> entryList;
  std::map<std::string_view, uint32_t> entryIndex;
  std::vector<GgufTensor> tensorList;
  std::map<std::string_view, uint32_t> tensorIndex;
};

/// "u32", "string", "array of f32": the type of a value, for messages.
std::string describeType(const GgufValue &value);

} // namespace lathe::frontend

#endif // LATHE_FRONTEND_GGUF_GGUFFILE_H

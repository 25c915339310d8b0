/// \file
/// Internal to frontend/gguf: the header of one GGUF file.
#ifndef LATHE_FRONTEND_GGUF_HEADER_H
#define LATHE_FRONTEND_GGUF_HEADER_H

#include "frontend/gguf/GgufFile.h"

#include <cstring>

namespace lathe::frontend {

/// Reads little-endian values front to back and never past the end.
class ByteCursor {
public:
  explicit ByteCursor(std::span<const uint8_t> bytes) : bytes(bytes) {}

  uint64_t position() const { return at; }
  uint64_t remaining() const { return bytes.size() - at; }
  std::span<const uint8_t> rest() const { return bytes.subspan(at); }

  /// The next `count` bytes; nothing, without moving, if there are fewer.
  std::optional<std::span<const uint8_t>> take(uint64_t count) {
    if (count > remaining())
      return std::nullopt;
    auto taken = bytes.subspan(at, count);
    at += count;
    return taken;
  }
  template <typename T> std::optional<T> take() {
    auto taken = take(sizeof(T));
    if (!taken)
      return std::nullopt;
    T value;
    std::memcpy(&value, taken->data(), sizeof(T));
    return value;
  }

private:
  std::span<const uint8_t> bytes;
  uint64_t at = 0;
};

/// Bytes of a value of a fixed-size type; 0 for strings and arrays.
constexpr uint64_t sizeOfType(GgufType type) {
  switch (type) {
  case GgufType::U8:
  case GgufType::I8:
  case GgufType::Bool:
    return 1;
  case GgufType::U16:
  case GgufType::I16:
    return 2;
  case GgufType::U32:
  case GgufType::I32:
  case GgufType::F32:
    return 4;
  case GgufType::U64:
  case GgufType::I64:
  case GgufType::F64:
    return 8;
  case GgufType::String:
  case GgufType::Array:
    break;
  }
  return 0;
}

/// The name of a type: "u32".
std::string_view nameOfType(GgufType type);

inline std::string_view textOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

/// A tensor as the header states it, nothing checked but that it can be read.
struct TensorRecord {
  std::string_view name;
  uint32_t rank;
  std::array<uint64_t, 4> dims;
  uint32_t ggmlType;
  uint64_t offset; ///< relative to the data section
};

/// A file's header: keys unique, all names printable UTF-8.
struct Header {
  std::vector<GgufEntry> entries;
  std::map<std::string_view, uint32_t> entryIndex;
  std::vector<TensorRecord> tensors;
  /// Bytes up to the end of the last tensor record.
  uint64_t size = 0;

  const GgufValue *find(std::string_view key) const {
    auto found = entryIndex.find(key);
    return found == entryIndex.end() ? nullptr : &entries[found->second].value;
  }
};

/// Reads a header. Errors do not name the file.
runtime::Result<Header> parseHeader(std::span<const uint8_t> file);

/// An error if the file does not start as a little-endian GGUF of version 2 or
/// 3 does, with a guess at what it is instead.
runtime::Result<void> checkMagic(std::span<const uint8_t> file);

/// Checks all tensor records of one file against its size and each other and
/// appends them to `out` in file order. Errors do not name the file.
runtime::Result<void> resolveTensors(const Header &header,
                                     std::span<const uint8_t> file,
                                     uint32_t shard,
                                     std::vector<GgufTensor> &out);

/// The value of an integer of any stored type, if it is one and fits.
template <typename T> std::optional<T> integerOf(const GgufValue &value);
extern template std::optional<uint16_t> integerOf(const GgufValue &);
extern template std::optional<uint32_t> integerOf(const GgufValue &);
extern template std::optional<uint64_t> integerOf(const GgufValue &);
extern template std::optional<int64_t> integerOf(const GgufValue &);

} // namespace lathe::frontend

#endif // LATHE_FRONTEND_GGUF_HEADER_H

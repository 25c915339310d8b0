// The typed getters: stored metadata to C++ values.

#include "frontend/gguf/Header.h"
#include "runtime/support/Quote.h"

#include <cmath>
#include <limits>

namespace lathe::frontend {

using runtime::displayPath;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::quoted;
using runtime::Result;

namespace {

template <typename T> T load(const uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// Any stored integer, exactly; nothing for other types.
std::optional<__int128> loadInteger(GgufType type, const uint8_t *at) {
  switch (type) {
  case GgufType::U8:
    return load<uint8_t>(at);
  case GgufType::I8:
    return load<int8_t>(at);
  case GgufType::U16:
    return load<uint16_t>(at);
  case GgufType::I16:
    return load<int16_t>(at);
  case GgufType::U32:
    return load<uint32_t>(at);
  case GgufType::I32:
    return load<int32_t>(at);
  case GgufType::U64:
    return load<uint64_t>(at);
  case GgufType::I64:
    return load<int64_t>(at);
  default:
    return std::nullopt;
  }
}

template <typename T>
std::optional<T> fittingInteger(GgufType type, const uint8_t *at) {
  auto value = loadInteger(type, at);
  if (!value || *value < std::numeric_limits<T>::min() ||
      *value > std::numeric_limits<T>::max())
    return std::nullopt;
  return static_cast<T>(*value);
}

/// A stored float that is finite as f32; nothing otherwise.
std::optional<float> loadFloat(GgufType type, const uint8_t *at) {
  float value;
  if (type == GgufType::F32) {
    value = load<float>(at);
  } else if (type == GgufType::F64) {
    double wide = load<double>(at);
    // Not a cast of a value out of range, which would be undefined.
    if (!(std::fabs(wide) <= double(std::numeric_limits<float>::max())))
      return std::nullopt;
    value = static_cast<float>(wide);
  } else {
    return std::nullopt;
  }
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

tl::unexpected<runtime::Error> missing(const GgufFile &file,
                                       std::string_view key) {
  return fail(ErrorKind::NotFound, "{}: key {} is missing",
              displayPath(file.path()), quoted(key));
}

tl::unexpected<runtime::Error> unfit(const GgufFile &file, std::string_view key,
                                     const GgufValue &value,
                                     std::string_view wanted) {
  std::string shown;
  if (auto integer = loadInteger(value.type, value.bytes.data()))
    shown = *integer < 0 ? fmt::format(" {}", static_cast<int64_t>(*integer))
                         : fmt::format(" {}", static_cast<uint64_t>(*integer));
  else if (value.type == GgufType::F32)
    shown = fmt::format(" {}", load<float>(value.bytes.data()));
  else if (value.type == GgufType::F64)
    shown = fmt::format(" {}", load<double>(value.bytes.data()));
  return fail(ErrorKind::InvalidInput, "{}: key {} is {}{}, not {}",
              displayPath(file.path()), quoted(key), describeType(value), shown,
              wanted);
}

/// get(key), or the fallback if the key is absent.
template <typename T, typename Get>
Result<T> orElse(const GgufFile &file, std::string_view key, T fallback,
                 Get get) {
  if (!file.has(key))
    return fallback;
  return get();
}

template <typename T>
Result<T> getInteger(const GgufFile &file, std::string_view key,
                     std::string_view wanted) {
  const GgufValue *value = file.find(key);
  if (!value)
    return missing(file, key);
  if (auto integer = integerOf<T>(*value))
    return *integer;
  return unfit(file, key, *value, wanted);
}

/// Reads an array of fixed-size elements; read(type, address) gives nothing for
/// an element that does not fit.
template <typename T, typename Read>
Result<std::vector<T>> getFixedArray(const GgufFile &file, std::string_view key,
                                     std::string_view wanted, Read read) {
  const GgufValue *value = file.find(key);
  if (!value)
    return missing(file, key);
  uint64_t size = sizeOfType(value->elementType);
  if (value->type != GgufType::Array || size == 0)
    return unfit(file, key, *value, fmt::format("an array of {}", wanted));
  std::vector<T> out;
  out.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    auto element = read(value->elementType, value->bytes.data() + i * size);
    if (!element)
      return fail(ErrorKind::InvalidInput,
                  "{}: key {}: element {} (of type {}) is not {}",
                  displayPath(file.path()), quoted(key), i,
                  nameOfType(value->elementType), wanted);
    out.push_back(*element);
  }
  return out;
}

constexpr std::string_view u32Wanted = "an integer of 0 to 4294967295";

} // namespace

template <typename T> std::optional<T> integerOf(const GgufValue &value) {
  return fittingInteger<T>(value.type, value.bytes.data());
}
template std::optional<uint16_t> integerOf(const GgufValue &);
template std::optional<uint32_t> integerOf(const GgufValue &);
template std::optional<uint64_t> integerOf(const GgufValue &);
template std::optional<int64_t> integerOf(const GgufValue &);

const GgufValue *GgufFile::find(std::string_view key) const {
  auto found = entryIndex.find(key);
  return found == entryIndex.end() ? nullptr : &entryList[found->second].value;
}

Result<uint32_t> GgufFile::getU32(std::string_view key) const {
  return getInteger<uint32_t>(*this, key, u32Wanted);
}
Result<uint32_t> GgufFile::getU32(std::string_view key,
                                  uint32_t fallback) const {
  return orElse(*this, key, fallback, [&] { return getU32(key); });
}

Result<uint64_t> GgufFile::getU64(std::string_view key) const {
  return getInteger<uint64_t>(*this, key, "an integer of at least 0");
}
Result<uint64_t> GgufFile::getU64(std::string_view key,
                                  uint64_t fallback) const {
  return orElse(*this, key, fallback, [&] { return getU64(key); });
}

Result<int64_t> GgufFile::getI64(std::string_view key) const {
  return getInteger<int64_t>(*this, key, "a 64-bit integer");
}
Result<int64_t> GgufFile::getI64(std::string_view key, int64_t fallback) const {
  return orElse(*this, key, fallback, [&] { return getI64(key); });
}

Result<float> GgufFile::getF32(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return missing(*this, key);
  if (auto number = loadFloat(value->type, value->bytes.data()))
    return *number;
  return unfit(*this, key, *value, "a finite float");
}
Result<float> GgufFile::getF32(std::string_view key, float fallback) const {
  return orElse(*this, key, fallback, [&] { return getF32(key); });
}

Result<bool> GgufFile::getBool(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return missing(*this, key);
  if (value->type != GgufType::Bool)
    return unfit(*this, key, *value, "a bool");
  return value->bytes[0] != 0;
}
Result<bool> GgufFile::getBool(std::string_view key, bool fallback) const {
  return orElse(*this, key, fallback, [&] { return getBool(key); });
}

Result<std::string_view> GgufFile::getString(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return missing(*this, key);
  if (value->type != GgufType::String)
    return unfit(*this, key, *value, "a string");
  return textOf(value->bytes);
}
Result<std::string_view> GgufFile::getString(std::string_view key,
                                             std::string_view fallback) const {
  return orElse(*this, key, fallback, [&] { return getString(key); });
}

Result<std::vector<std::string_view>>
GgufFile::getStringArray(std::string_view key) const {
  const GgufValue *value = find(key);
  if (!value)
    return missing(*this, key);
  if (value->type != GgufType::Array || value->elementType != GgufType::String)
    return unfit(*this, key, *value, "an array of strings");
  std::vector<std::string_view> out;
  out.reserve(value->count);
  // Lengths were checked when the header was read.
  ByteCursor cursor(value->bytes);
  for (uint64_t i = 0; i < value->count; ++i) {
    auto length = cursor.take<uint64_t>();
    auto text = length ? cursor.take(*length) : std::nullopt;
    if (!text)
      return fail(ErrorKind::Internal, "{}: key {} changed while open",
                  displayPath(path()), quoted(key));
    out.push_back(textOf(*text));
  }
  return out;
}

Result<std::vector<int32_t>> GgufFile::getI32Array(std::string_view key) const {
  return getFixedArray<int32_t>(
      *this, key, "a 32-bit integer",
      [](GgufType type, const uint8_t *at) -> std::optional<int32_t> {
        if (type == GgufType::Bool)
          return *at;
        return fittingInteger<int32_t>(type, at);
      });
}

Result<std::vector<float>> GgufFile::getF32Array(std::string_view key) const {
  return getFixedArray<float>(*this, key, "a finite float", loadFloat);
}

Result<std::vector<uint32_t>> GgufFile::getU32PerLayer(std::string_view key,
                                                       uint32_t layers) const {
  if (layers > maxLayers)
    return fail(ErrorKind::InvalidInput, "{}: {} layers are more than {}",
                displayPath(path()), layers, maxLayers);
  const GgufValue *value = find(key);
  if (!value)
    return missing(*this, key);
  if (value->type != GgufType::Array) {
    auto single = getU32(key);
    if (!single)
      return failFrom(single);
    return std::vector<uint32_t>(layers, *single);
  }
  if (value->count != layers)
    return fail(ErrorKind::InvalidInput,
                "{}: key {} has {} elements for {} layers", displayPath(path()),
                quoted(key), value->count, layers);
  return getFixedArray<uint32_t>(*this, key, u32Wanted,
                                 fittingInteger<uint32_t>);
}
Result<std::vector<uint32_t>>
GgufFile::getU32PerLayer(std::string_view key, uint32_t layers,
                         uint32_t fallback) const {
  if (has(key) || layers > maxLayers)
    return getU32PerLayer(key, layers);
  return std::vector<uint32_t>(layers, fallback);
}

} // namespace lathe::frontend

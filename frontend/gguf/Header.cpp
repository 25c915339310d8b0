#include "frontend/gguf/Header.h"

#include "runtime/support/Quote.h"

#include <algorithm>
#include <limits>

namespace lathe::frontend {

using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::quoted;
using runtime::Result;

namespace {

/// Far above any real model's; they bound what the indexes may allocate.
constexpr uint64_t maxKeys = 65536;
constexpr uint64_t maxTensors = 65536;
/// The specification's bound on keys, here on tensor names too.
constexpr uint64_t maxNameBytes = 65535;
/// No known key nests arrays at all; bounds the recursion.
constexpr int maxArrayDepth = 4;
/// Fewest bytes that a key with its value, and a tensor record, can take.
constexpr uint64_t minEntryBytes = 8 + 1 + 4 + 1;
constexpr uint64_t minTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

tl::unexpected<runtime::Error> truncated(std::string_view what) {
  return fail(ErrorKind::InvalidInput, "truncated: the file ends inside {}",
              what);
}

/// Fewest bytes that one array element can take.
uint64_t minElementBytes(GgufType type) {
  if (type == GgufType::String)
    return 8; // its length
  if (type == GgufType::Array)
    return 4 + 8; // its element type and count
  return sizeOfType(type);
}

class HeaderParser {
public:
  explicit HeaderParser(std::span<const uint8_t> file) : cursor(file) {}

  Result<Header> parse();

private:
  Result<std::span<const uint8_t>> takeString(std::string_view what);
  Result<std::string_view> takeName(std::string_view what);
  Result<GgufType> takeType();
  Result<GgufValue> takeValue(GgufType type, int depth);
  Result<GgufValue> takeArray(int depth);
  Result<void> takeEntry(uint64_t number);
  Result<void> takeTensor(uint64_t number);
  Result<void> takeTensorBody(TensorRecord &tensor);

  ByteCursor cursor;
  Header header;
};

Result<std::span<const uint8_t>>
HeaderParser::takeString(std::string_view what) {
  auto length = cursor.take<uint64_t>();
  if (!length)
    return truncated(what);
  auto bytes = cursor.take(*length);
  if (!bytes)
    return fail(ErrorKind::InvalidInput,
                "{} is said to have {} bytes, but the file ends {} bytes later",
                what, *length, cursor.remaining());
  return *bytes;
}

Result<std::string_view> HeaderParser::takeName(std::string_view what) {
  auto bytes = takeString(what);
  if (!bytes)
    return failFrom(bytes);
  std::string_view name = textOf(*bytes);
  if (name.empty())
    return fail(ErrorKind::InvalidInput, "{} is empty", what);
  if (name.size() > maxNameBytes)
    return fail(ErrorKind::InvalidInput, "{} has {} bytes, more than {}", what,
                name.size(), maxNameBytes);
  bool control = std::any_of(name.begin(), name.end(), [](unsigned char c) {
    return c < 0x20 || c == 0x7f;
  });
  if (control || !runtime::isUtf8(name))
    return fail(ErrorKind::InvalidInput, "{}, {}, is not printable UTF-8", what,
                quoted(name));
  return name;
}

Result<GgufType> HeaderParser::takeType() {
  auto type = cursor.take<uint32_t>();
  if (!type)
    return truncated("its type");
  if (*type > static_cast<uint32_t>(GgufType::F64))
    return fail(ErrorKind::InvalidInput, "unknown value type {}", *type);
  return static_cast<GgufType>(*type);
}

Result<GgufValue> HeaderParser::takeValue(GgufType type, int depth) {
  if (type == GgufType::Array)
    return takeArray(depth + 1);
  if (type == GgufType::String) {
    auto bytes = takeString("its string");
    if (!bytes)
      return failFrom(bytes);
    return GgufValue{type, type, 1, *bytes};
  }
  auto bytes = cursor.take(sizeOfType(type));
  if (!bytes)
    return truncated("its value");
  if (type == GgufType::Bool && (*bytes)[0] > 1)
    return fail(ErrorKind::InvalidInput, "a boolean with value {}",
                (*bytes)[0]);
  return GgufValue{type, type, 1, *bytes};
}

Result<GgufValue> HeaderParser::takeArray(int depth) {
  if (depth > maxArrayDepth)
    return fail(ErrorKind::InvalidInput, "arrays nested more than {} deep",
                maxArrayDepth);
  auto type = takeType();
  if (!type)
    return failFrom(type);
  auto count = cursor.take<uint64_t>();
  if (!count)
    return truncated("its array length");
  uint64_t left = cursor.remaining();
  if (*count > left / minElementBytes(*type))
    return fail(ErrorKind::InvalidInput,
                "an array of {} values of type {} cannot fit in the {} bytes "
                "that follow",
                *count, nameOfType(*type), left);
  GgufValue value{GgufType::Array, *type, *count, {}};
  if (uint64_t size = sizeOfType(*type)) {
    value.bytes = cursor.take(*count * size).value_or(value.bytes);
    if (*type == GgufType::Bool)
      for (uint8_t byte : value.bytes)
        if (byte > 1)
          return fail(ErrorKind::InvalidInput, "a boolean with value {}", byte);
    return value;
  }
  std::span<const uint8_t> rest = cursor.rest();
  for (uint64_t i = 0; i < *count; ++i) {
    auto element = takeValue(*type, depth);
    if (!element)
      return failFrom(element, fmt::format("element {}", i));
  }
  value.bytes = rest.first(rest.size() - cursor.remaining());
  return value;
}

Result<void> HeaderParser::takeEntry(uint64_t number) {
  auto key = takeName(fmt::format("the name of key {}", number));
  if (!key)
    return failFrom(key);
  std::string where = fmt::format("key {}", quoted(*key));
  auto type = takeType();
  if (!type)
    return failFrom(type, where);
  auto value = takeValue(*type, 0);
  if (!value)
    return failFrom(value, where);
  auto index = static_cast<uint32_t>(header.entries.size());
  if (!header.entryIndex.emplace(*key, index).second)
    return fail(ErrorKind::InvalidInput, "{} occurs twice", where);
  header.entries.push_back({*key, *value});
  return {};
}

Result<void> HeaderParser::takeTensor(uint64_t number) {
  auto name = takeName(fmt::format("the name of tensor {}", number));
  if (!name)
    return failFrom(name);
  TensorRecord tensor = {*name, 0, {1, 1, 1, 1}, 0, 0};
  if (auto body = takeTensorBody(tensor); !body)
    return failFrom(body, fmt::format("tensor {}", quoted(*name)));
  header.tensors.push_back(tensor);
  return {};
}

Result<void> HeaderParser::takeTensorBody(TensorRecord &tensor) {
  auto rank = cursor.take<uint32_t>();
  if (!rank)
    return truncated("its record");
  if (*rank < 1 || *rank > 4)
    return fail(ErrorKind::InvalidInput, "{} dimensions; 1 to 4 are possible",
                *rank);
  tensor.rank = *rank;
  for (uint32_t i = 0; i < *rank; ++i) {
    auto dim = cursor.take<uint64_t>();
    if (!dim)
      return truncated("its record");
    tensor.dims[i] = *dim;
  }
  auto type = cursor.take<uint32_t>();
  auto offset = cursor.take<uint64_t>();
  if (!type || !offset)
    return truncated("its record");
  tensor.ggmlType = *type;
  tensor.offset = *offset;
  return {};
}

Result<Header> HeaderParser::parse() {
  cursor.take(8); // magic and version: checkMagic
  auto tensors = cursor.take<uint64_t>();
  auto keys = cursor.take<uint64_t>();
  if (!tensors || !keys)
    return truncated("the counts of tensors and keys");
  uint64_t left = cursor.remaining();
  if (*keys > maxKeys || *keys > left / minEntryBytes)
    return fail(ErrorKind::InvalidInput, "{} keys are declared, more than {}",
                *keys,
                *keys > maxKeys ? fmt::format("the {} of any model", maxKeys)
                                : fmt::format("{} bytes can hold", left));
  if (*tensors > maxTensors || *tensors > left / minTensorBytes)
    return fail(ErrorKind::InvalidInput,
                "{} tensors are declared, more than {}", *tensors,
                *tensors > maxTensors
                    ? fmt::format("the {} of any model", maxTensors)
                    : fmt::format("{} bytes can hold", left));
  for (uint64_t i = 0; i < *keys; ++i)
    if (auto entry = takeEntry(i); !entry)
      return failFrom(entry);
  for (uint64_t i = 0; i < *tensors; ++i)
    if (auto tensor = takeTensor(i); !tensor)
      return failFrom(tensor);
  header.size = cursor.position();
  return std::move(header);
}

} // namespace

std::string_view nameOfType(GgufType type) {
  static constexpr std::string_view names[] = {
      "u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
      "bool", "string", "array", "u64", "i64", "f64"};
  return names[static_cast<size_t>(type)];
}

std::string describeType(const GgufValue &value) {
  if (value.type != GgufType::Array)
    return std::string(nameOfType(value.type));
  return fmt::format("array of {}", nameOfType(value.elementType));
}

Result<Header> parseHeader(std::span<const uint8_t> file) {
  return HeaderParser(file).parse();
}

} // namespace lathe::frontend

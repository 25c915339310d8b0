// Do the tensor records of one file agree with its size and with each other?

#include "frontend/gguf/Header.h"
#include "runtime/support/Checked.h"
#include "runtime/support/Quote.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace lathe::frontend {

using kernels::FormatTraits;
using runtime::checkedAdd;
using runtime::checkedMul;
using runtime::ErrorKind;
using runtime::fail;
using runtime::failFrom;
using runtime::quoted;
using runtime::Result;

namespace {

constexpr uint64_t defaultAlignment = 32;

/// Names of ggml types that exist but that Lathe does not read.
std::string_view nameOfForeignType(uint32_t type) {
  switch (type) {
  case 9:
    return "Q8_1";
  case 15:
    return "Q8_K";
  case 16:
    return "IQ2_XXS";
  case 17:
    return "IQ2_XS";
  case 18:
    return "IQ3_XXS";
  case 19:
    return "IQ1_S";
  case 21:
    return "IQ3_S";
  case 22:
    return "IQ2_S";
  case 24:
    return "I8";
  case 25:
    return "I16";
  case 26:
    return "I32";
  case 27:
    return "I64";
  case 28:
    return "F64";
  case 29:
    return "IQ1_M";
  case 34:
    return "TQ1_0";
  case 35:
    return "TQ2_0";
  case 39:
    return "MXFP4";
  default:
    return {};
  }
}

std::string supportedFormats() {
  std::string names;
  for (const FormatTraits &traits : kernels::formatTable)
    names += fmt::format("{}{}", names.empty() ? "" : " ", traits.name);
  return names;
}

Result<uint64_t> alignmentOf(const Header &header) {
  constexpr std::string_view key = "general.alignment";
  const GgufValue *value = header.find(key);
  if (!value)
    return defaultAlignment;
  auto alignment = integerOf<uint32_t>(*value);
  if (!alignment || *alignment == 0 || (*alignment & (*alignment - 1)) != 0)
    return fail(ErrorKind::InvalidInput, "key '{}' is {}, not a power of two",
                key,
                alignment ? std::to_string(*alignment) : describeType(*value));
  return *alignment;
}

/// The bytes a record's tensor takes by its dimensions and type.
Result<uint64_t> sizeOf(const TensorRecord &record, kernels::Format format) {
  const FormatTraits &traits = traitsOf(format);
  for (uint32_t i = 0; i < record.rank; ++i)
    if (record.dims[i] == 0)
      return fail(ErrorKind::InvalidInput, "dimension {} is 0", i);
  if (record.dims[0] % traits.blockElems != 0)
    return fail(ErrorKind::InvalidInput,
                "rows of {} elements are not a multiple of {}, the block of {}",
                record.dims[0], traits.blockElems, traits.name);
  std::optional<uint64_t> bytes = rowBytes(format, record.dims[0]);
  // The element count must fit too, since k() and rows() multiply dims.
  std::optional<uint64_t> elems = record.dims[0];
  for (uint32_t i = 1; i < 4; ++i) {
    bytes = bytes ? checkedMul(*bytes, record.dims[i]) : std::nullopt;
    elems = elems ? checkedMul(*elems, record.dims[i]) : std::nullopt;
  }
  if (!bytes || !elems)
    return fail(ErrorKind::InvalidInput,
                "dimensions [{}] are too large for any file",
                fmt::join(record.dims.begin(),
                          record.dims.begin() + record.rank, ", "));
  return *bytes;
}

Result<kernels::Format> formatOf(const TensorRecord &record) {
  if (auto format = kernels::formatFromGgml(record.ggmlType))
    return *format;
  std::string_view name = nameOfForeignType(record.ggmlType);
  if (name.empty())
    return fail(ErrorKind::InvalidInput, "unknown ggml type {}",
                record.ggmlType);
  return fail(ErrorKind::Unsupported,
              "type {} is not supported; the supported types are {}", name,
              supportedFormats());
}

/// Tensors sorted by where they lie; two of them may not share a byte.
Result<void> checkOverlap(std::span<const GgufTensor> tensors) {
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return tensors[a].offset < tensors[b].offset;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const GgufTensor &low = tensors[order[i - 1]], &high = tensors[order[i]];
    if (low.offset + low.data.size() > high.offset)
      return fail(ErrorKind::InvalidInput,
                  "tensor {} (bytes {} to {}) overlaps tensor {} (from byte "
                  "{})",
                  quoted(low.name), low.offset, low.offset + low.data.size(),
                  quoted(high.name), high.offset);
  }
  return {};
}

/// Bytes after the last tensor are ignored, but another GGUF file there means
/// that shards were joined with cat, and their tensors would be missing.
Result<void> checkTrailing(std::span<const uint8_t> file, uint64_t end,
                           uint64_t alignment) {
  auto aligned = runtime::checkedAlign(end, alignment);
  for (uint64_t at : {end, aligned.value_or(end)})
    if (at <= file.size() && file.size() - at >= 8 &&
        checkMagic(file.subspan(at)))
      return fail(ErrorKind::InvalidInput,
                  "another GGUF file starts at byte {}: were shards joined "
                  "with cat? Keep them apart, or merge them with llama.cpp's "
                  "llama-gguf-split --merge",
                  at);
  return {};
}

} // namespace

Result<void> resolveTensors(const Header &header, std::span<const uint8_t> file,
                            uint32_t shard, std::vector<GgufTensor> &out) {
  auto alignment = alignmentOf(header);
  if (!alignment)
    return failFrom(alignment);
  auto dataStart = runtime::checkedAlign(header.size, *alignment);
  if (!dataStart)
    return fail(ErrorKind::InvalidInput, "the header is too large");

  size_t first = out.size();
  uint64_t end = header.size;
  std::set<std::string_view> names;
  // Of all tensors that lie outside the file, the one that comes first in it.
  std::optional<uint64_t> outsideOffset;
  std::string outside;
  for (const TensorRecord &record : header.tensors) {
    std::string where = fmt::format("tensor {}", quoted(record.name));
    if (!names.insert(record.name).second)
      return fail(ErrorKind::InvalidInput, "{} occurs twice", where);
    auto format = formatOf(record);
    if (!format)
      return failFrom(format, where);
    auto size = sizeOf(record, *format);
    if (!size)
      return failFrom(size, where);
    if (record.offset % *alignment != 0)
      return fail(ErrorKind::InvalidInput,
                  "{}: its offset, {}, is not a multiple of the alignment, {}",
                  where, record.offset, *alignment);
    auto offset = checkedAdd(*dataStart, record.offset);
    if (!offset || !runtime::rangeFits(*offset, *size, file.size())) {
      if (!outsideOffset || record.offset < *outsideOffset) {
        outsideOffset = record.offset;
        outside = fmt::format(
            "truncated or damaged: {} needs {} bytes from data offset {}, but "
            "the file's {} bytes hold data up to offset {}",
            where, *size, record.offset, file.size(),
            file.size() > *dataStart ? file.size() - *dataStart : 0);
      }
      continue;
    }
    end = std::max(end, *offset + *size);
    out.push_back({record.name, record.dims, record.rank, *format, shard,
                   *offset, file.subspan(*offset, *size)});
  }
  if (outsideOffset)
    return fail(ErrorKind::InvalidInput, "{}", outside);
  if (auto apart = checkOverlap(std::span(out).subspan(first)); !apart)
    return apart;
  return checkTrailing(file, end, *alignment);
}

} // namespace lathe::frontend

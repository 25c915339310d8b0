/// \file
/// The weight formats that Lathe reads: their names, numbers and block sizes.
/// Bit layouts inside a block are ggml's (Dequantize.h for the values,
/// Layout.h for the packed form).
///
/// To add a format: a row here, its fields in BlockCodec.cpp, its values in
/// Dequantize.cpp, its struct in Blocks.h, and a golden row.
#ifndef LATHE_KERNELS_FORMATS_FORMAT_H
#define LATHE_KERNELS_FORMATS_FORMAT_H

#include "kernels/formats/FormatId.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lathe::kernels {

/// What is constant about a format.
struct FormatTraits {
  Format format;
  /// As GGUF tools show it: "Q4_K".
  std::string_view name;
  /// As the IR spells it: "q4_k".
  std::string_view mnemonic;
  /// Consecutive elements of a row that share one block.
  uint32_t blockElems;
  /// Bytes of one block.
  uint32_t blockBytes;
  /// The number of the type in a GGUF tensor record.
  uint32_t ggmlType;
  /// Byte offsets in a block of its f16 scale d and of its f16 offset m or
  /// dmin; -1: it has none.
  int16_t scaleAt;
  int16_t offsetAt;
};

/// One row per format, in the order of the enumeration.
inline constexpr std::array<FormatTraits, 15> formatTable = {{
    {Format::F32, "F32", "f32", 1, 4, 0, -1, -1},
    {Format::F16, "F16", "f16", 1, 2, 1, -1, -1},
    {Format::BF16, "BF16", "bf16", 1, 2, 30, -1, -1},
    {Format::Q4_0, "Q4_0", "q4_0", 32, 18, 2, 0, -1},
    {Format::Q4_1, "Q4_1", "q4_1", 32, 20, 3, 0, 2},
    {Format::Q5_0, "Q5_0", "q5_0", 32, 22, 6, 0, -1},
    {Format::Q5_1, "Q5_1", "q5_1", 32, 24, 7, 0, 2},
    {Format::Q8_0, "Q8_0", "q8_0", 32, 34, 8, 0, -1},
    {Format::Q2_K, "Q2_K", "q2_k", 256, 84, 10, 80, 82},
    {Format::Q3_K, "Q3_K", "q3_k", 256, 110, 11, 108, -1},
    {Format::Q4_K, "Q4_K", "q4_k", 256, 144, 12, 0, 2},
    {Format::Q5_K, "Q5_K", "q5_k", 256, 176, 13, 0, 2},
    {Format::Q6_K, "Q6_K", "q6_k", 256, 210, 14, 208, -1},
    {Format::IQ4_NL, "IQ4_NL", "iq4_nl", 32, 18, 20, 0, -1},
    {Format::IQ4_XS, "IQ4_XS", "iq4_xs", 256, 136, 23, 0, -1},
}};

/// Most elements of a block of any format.
inline constexpr uint32_t maxBlockElems = 256;
/// Most bytes of a block of any format.
inline constexpr uint32_t maxBlockBytes = 210;

/// The traits of a format; the value must be one of the enumeration's (see
/// isFormat).
constexpr const FormatTraits &traitsOf(Format format) {
  return formatTable[static_cast<size_t>(format)];
}

/// True if a stored number is a format's.
constexpr bool isFormat(uint8_t number) { return number < formatTable.size(); }

/// True for the formats whose elements are plain floats.
constexpr bool isFloatFormat(Format format) {
  return traitsOf(format).blockElems == 1;
}

/// The format of a name or mnemonic, in any letter case; nothing if unknown.
constexpr std::optional<Format> formatFromName(std::string_view name) {
  auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  for (const FormatTraits &traits : formatTable) {
    bool equal = traits.mnemonic.size() == name.size();
    for (size_t i = 0; equal && i < name.size(); ++i)
      equal = lower(name[i]) == traits.mnemonic[i];
    if (equal)
      return traits.format;
  }
  return std::nullopt;
}

/// The format of a ggml type number; nothing if Lathe does not read it.
constexpr std::optional<Format> formatFromGgml(uint32_t ggmlType) {
  for (const FormatTraits &traits : formatTable)
    if (traits.ggmlType == ggmlType)
      return traits.format;
  return std::nullopt;
}

/// Bytes of `elems` consecutive elements of one row; nothing if `elems` is no
/// multiple of the block or the size does not fit 64 bits.
constexpr std::optional<uint64_t> rowBytes(Format format, uint64_t elems) {
  const FormatTraits &traits = traitsOf(format);
  uint64_t bytes = 0;
  if (elems % traits.blockElems != 0 ||
      __builtin_mul_overflow(elems / traits.blockElems,
                             uint64_t(traits.blockBytes), &bytes))
    return std::nullopt;
  return bytes;
}

} // namespace lathe::kernels

#endif // LATHE_KERNELS_FORMATS_FORMAT_H

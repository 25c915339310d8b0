#include "kernels/formats/Layout.h"

#include "kernels/formats/BlockCodec.h"
#include "kernels/formats/Dequantize.h"

#include <cassert>
#include <cstring>

namespace lathe::kernels {

namespace {

/// Addresses one row's bytes inside one packed block, in stored order. The
/// planes are described in Blocks.h.
template <typename Byte> class RowCursor {
public:
  RowCursor(Byte *block, uint32_t row) : at(block), row(row) {}

  /// The two bytes of a 16-bit field.
  Byte *half() {
    Byte *here = at + 2 * row;
    at += 2 * r16Rows;
    return here;
  }
  /// One byte of a byte plane.
  Byte *byte() {
    Byte *here = at + row;
    at += r16Rows;
    return here;
  }
  /// The next four bytes of a plane of codes.
  Byte *quad() {
    Byte *here = at + 4 * row;
    at += 4 * r16Rows;
    return here;
  }

private:
  Byte *at;
  uint32_t row;
};

void scatter(Format format, const BlockFields &fields, uint8_t *block,
             uint32_t row) {
  FieldTraits traits = fieldTraitsOf(format);
  uint32_t elems = traitsOf(format).blockElems;
  RowCursor<uint8_t> cursor(block, row);
  for (int i = 0; i < traits.halves; ++i) {
    uint8_t *to = cursor.half();
    to[0] = static_cast<uint8_t>(fields.half[i]);
    to[1] = static_cast<uint8_t>(fields.half[i] >> 8);
  }
  for (int i = 0; i < traits.scaleBytes; ++i)
    *cursor.byte() = fields.scales[i];

  /// `count` codes of `bits` bits, 4 elements apart, side by side in a byte.
  auto gather = [&](uint32_t first, uint32_t stride, int count, int bits,
                    int shift) {
    unsigned value = 0;
    for (int i = 0; i < count; ++i)
      value |=
          ((fields.codes[first + stride * i] >> shift) & ((1u << bits) - 1))
          << (bits * i);
    return static_cast<uint8_t>(value);
  };
  for (uint32_t sub = 0; sub < elems; sub += 32) {
    if (traits.oneBitShift >= 0)
      for (uint8_t *to = cursor.quad(); uint32_t b : {0, 1, 2, 3})
        to[b] = gather(sub + b, 4, 8, 1, traits.oneBitShift);
    if (traits.twoBitShift >= 0)
      for (uint32_t half = sub; half < sub + 32; half += 16)
        for (uint8_t *to = cursor.quad(); uint32_t b : {0, 1, 2, 3})
          to[b] = gather(half + b, 4, 4, 2, traits.twoBitShift);
    if (traits.fourBitShift >= 0)
      for (uint32_t k = sub; k < sub + 16; k += 4)
        for (uint8_t *to = cursor.quad(); uint32_t b : {0, 1, 2, 3})
          to[b] = gather(k + b, 16, 2, 4, traits.fourBitShift);
    if (traits.byteShift >= 0)
      for (uint32_t k = sub; k < sub + 32; k += 4)
        std::memcpy(cursor.quad(), fields.codes + k, 4);
  }
}

void collect(Format format, const uint8_t *block, uint32_t row,
             BlockFields &fields) {
  FieldTraits traits = fieldTraitsOf(format);
  uint32_t elems = traitsOf(format).blockElems;
  RowCursor<const uint8_t> cursor(block, row);
  for (int i = 0; i < traits.halves; ++i) {
    const uint8_t *from = cursor.half();
    fields.half[i] = static_cast<uint16_t>(from[0] | from[1] << 8);
  }
  for (int i = 0; i < traits.scaleBytes; ++i)
    fields.scales[i] = *cursor.byte();

  std::memset(fields.codes, 0, elems);
  auto spread = [&](uint8_t value, uint32_t first, uint32_t stride, int count,
                    int bits, int shift) {
    for (int i = 0; i < count; ++i)
      fields.codes[first + stride * i] |= static_cast<uint8_t>(
          ((value >> (bits * i)) & ((1u << bits) - 1)) << shift);
  };
  for (uint32_t sub = 0; sub < elems; sub += 32) {
    if (traits.oneBitShift >= 0)
      for (const uint8_t *from = cursor.quad(); uint32_t b : {0, 1, 2, 3})
        spread(from[b], sub + b, 4, 8, 1, traits.oneBitShift);
    if (traits.twoBitShift >= 0)
      for (uint32_t half = sub; half < sub + 32; half += 16)
        for (const uint8_t *from = cursor.quad(); uint32_t b : {0, 1, 2, 3})
          spread(from[b], half + b, 4, 4, 2, traits.twoBitShift);
    if (traits.fourBitShift >= 0)
      for (uint32_t k = sub; k < sub + 16; k += 4)
        for (const uint8_t *from = cursor.quad(); uint32_t b : {0, 1, 2, 3})
          spread(from[b], k + b, 16, 2, 4, traits.fourBitShift);
    if (traits.byteShift >= 0)
      for (uint32_t k = sub; k < sub + 32; k += 4)
        std::memcpy(fields.codes + k, cursor.quad(), 4);
  }
}

/// Where element k of row `row` of a float format lies in its packed group.
uint64_t floatOffset(Format format, uint64_t k, uint32_t row) {
  switch (format) {
  case Format::F32:
    return 4 * (r16Rows * k + row);
  case Format::F16:
    return 2 * (r16Rows * k + row);
  default: // BF16: pairs of k
    return 2 * (2 * (r16Rows * (k / 2) + row) + k % 2);
  }
}

/// k rounded up to what one packed block of a float format holds.
uint64_t paddedK(Format format, uint64_t k) {
  return format == Format::BF16 ? k + k % 2 : k;
}

/// rowBytes and packedGroupBytes of a k that the caller has checked.
uint64_t sourceStride(Format format, uint64_t k) {
  const FormatTraits &traits = traitsOf(format);
  assert(k % traits.blockElems == 0);
  return k / traits.blockElems * traits.blockBytes;
}
uint64_t groupStride(Format format, uint64_t k) {
  return r16Rows * sourceStride(format, paddedK(format, k));
}

} // namespace

std::optional<uint64_t> packedGroupBytes(Format format, uint64_t k) {
  if (format == Format::BF16 && k == UINT64_MAX)
    return std::nullopt;
  auto bytes = rowBytes(format, paddedK(format, k));
  uint64_t group = 0;
  if (!bytes || __builtin_mul_overflow(*bytes, uint64_t(r16Rows), &group))
    return std::nullopt;
  return group;
}

std::optional<uint64_t> packedBytes(Format format, uint64_t rows, uint64_t k) {
  auto group = packedGroupBytes(format, k);
  uint64_t groups = rows / r16Rows + (rows % r16Rows != 0);
  uint64_t bytes = 0;
  if (!group || __builtin_mul_overflow(*group, groups, &bytes))
    return std::nullopt;
  return bytes;
}

void packGroup(Format format, const std::array<const uint8_t *, r16Rows> &rows,
               uint64_t k, uint8_t *dst) {
  const FormatTraits &traits = traitsOf(format);
  assert(k % traits.blockElems == 0);
  bool whole = true;
  for (const uint8_t *row : rows)
    whole &= row != nullptr;
  if (!whole || paddedK(format, k) != k)
    std::memset(dst, 0, groupStride(format, k));

  if (isFloatFormat(format)) {
    for (uint32_t row = 0; row < r16Rows; ++row)
      for (uint64_t i = 0; rows[row] && i < k; ++i)
        std::memcpy(dst + floatOffset(format, i, row),
                    rows[row] + i * traits.blockBytes, traits.blockBytes);
    return;
  }
  BlockFields fields;
  uint64_t blocks = k / traits.blockElems;
  for (uint64_t block = 0; block < blocks; ++block) {
    for (uint32_t row = 0; row < r16Rows; ++row) {
      if (!rows[row])
        continue;
      splitBlock(format, rows[row] + block * traits.blockBytes, fields);
      scatter(format, fields, dst, row);
    }
    dst += r16Rows * traits.blockBytes;
  }
}

void unpackGroup(Format format, const uint8_t *packed, uint64_t k,
                 const std::array<uint8_t *, r16Rows> &rows) {
  const FormatTraits &traits = traitsOf(format);
  assert(k % traits.blockElems == 0);
  if (isFloatFormat(format)) {
    for (uint32_t row = 0; row < r16Rows; ++row)
      for (uint64_t i = 0; rows[row] && i < k; ++i)
        std::memcpy(rows[row] + i * traits.blockBytes,
                    packed + floatOffset(format, i, row), traits.blockBytes);
    return;
  }
  BlockFields fields;
  uint64_t blocks = k / traits.blockElems;
  for (uint64_t block = 0; block < blocks; ++block) {
    for (uint32_t row = 0; row < r16Rows; ++row) {
      if (!rows[row])
        continue;
      collect(format, packed, row, fields);
      joinBlock(format, fields, rows[row] + block * traits.blockBytes);
    }
    packed += r16Rows * traits.blockBytes;
  }
}

void packRows(Format format, const uint8_t *src, uint64_t rows, uint64_t k,
              uint8_t *dst) {
  uint64_t stride = sourceStride(format, k);
  uint64_t groupBytes = groupStride(format, k);
  for (uint64_t first = 0; first < rows; first += r16Rows, dst += groupBytes) {
    std::array<const uint8_t *, r16Rows> group = {};
    for (uint32_t i = 0; i < r16Rows && first + i < rows; ++i)
      group[i] = src + (first + i) * stride;
    packGroup(format, group, k, dst);
  }
}

void unpackRows(Format format, const uint8_t *packed, uint64_t rows, uint64_t k,
                uint8_t *dst) {
  uint64_t stride = sourceStride(format, k);
  uint64_t groupBytes = groupStride(format, k);
  for (uint64_t first = 0; first < rows;
       first += r16Rows, packed += groupBytes) {
    std::array<uint8_t *, r16Rows> group = {};
    for (uint32_t i = 0; i < r16Rows && first + i < rows; ++i)
      group[i] = dst + (first + i) * stride;
    unpackGroup(format, packed, k, group);
  }
}

void gatherRow(Format format, const uint8_t *packed, uint64_t rows, uint64_t k,
               uint64_t row, float *dst) {
  const FormatTraits &traits = traitsOf(format);
  assert(row < rows && k % traits.blockElems == 0);
  packed += groupStride(format, k) * (row / r16Rows);
  uint32_t lane = static_cast<uint32_t>(row % r16Rows);
  if (isFloatFormat(format)) {
    for (uint64_t i = 0; i < k; ++i)
      dequantizeRow(format, packed + floatOffset(format, i, lane), dst + i, 1);
    return;
  }
  BlockFields fields;
  for (uint64_t i = 0; i < k; i += traits.blockElems) {
    collect(format, packed, lane, fields);
    dequantizeFields(format, fields, dst + i);
    packed += r16Rows * traits.blockBytes;
  }
}

} // namespace lathe::kernels

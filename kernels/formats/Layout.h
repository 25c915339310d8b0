/// \file
/// Packed weight layouts: bijections of a format's bits that put weights in the
/// order in which kernels read them.
///
/// Layout `r16` (all x86 ISA layers): rows in groups of 16; a group is one
/// packed block after the other in k order, each 16 rows × blockElems k
/// (BF16: 2 k) as the structures of Blocks.h say. Rows of the last group that
/// do not exist are zero bytes; an odd k of BF16 is padded with one zero
/// element per row. Nothing is added between blocks or groups, so for whole
/// groups the packed bytes are as many as the source's.
///
/// All functions are thread-safe; sources and packed bytes may lie at any
/// alignment. `k` is a multiple of the format's blockElems.
#ifndef LATHE_KERNELS_FORMATS_LAYOUT_H
#define LATHE_KERNELS_FORMATS_LAYOUT_H

#include "kernels/formats/Format.h"

#include <array>

namespace lathe::kernels {

/// The layout's id in recipes, IR and engines.
inline constexpr std::string_view r16Name = "r16";
/// Rows of one group of r16.
inline constexpr uint32_t r16Rows = 16;

/// Bytes of one packed 16-row group; nothing if k is no multiple of blockElems
/// or the size does not fit 64 bits.
std::optional<uint64_t> packedGroupBytes(Format format, uint64_t k);

/// Bytes of a packed matrix of `rows` rows (the last group padded); nothing as
/// above.
std::optional<uint64_t> packedBytes(Format format, uint64_t rows, uint64_t k);

/// Packs one group. rows[i] points to the k elements of row i in ggml's layout,
/// or is null for a row of zero bytes; the rows may come from anywhere, which
/// is how passes interleave or permute them. Writes packedGroupBytes to dst.
void packGroup(Format format, const std::array<const uint8_t *, r16Rows> &rows,
               uint64_t k, uint8_t *dst);

/// Packs `rows` consecutive rows of `src`. Writes packedBytes to dst.
void packRows(Format format, const uint8_t *src, uint64_t rows, uint64_t k,
              uint8_t *dst);

/// The inverse of packGroup: writes k elements of row i to rows[i] unless that
/// is null.
void unpackGroup(Format format, const uint8_t *packed, uint64_t k,
                 const std::array<uint8_t *, r16Rows> &rows);

/// The inverse of packRows: writes rows × k elements in ggml's layout to dst.
void unpackRows(Format format, const uint8_t *packed, uint64_t rows, uint64_t k,
                uint8_t *dst);

/// Dequantizes row `row` (< rows) of a packed matrix to dst[0..k): the same
/// bits as dequantizeRow of the source's row.
void gatherRow(Format format, const uint8_t *packed, uint64_t rows, uint64_t k,
               uint64_t row, float *dst);

} // namespace lathe::kernels

#endif // LATHE_KERNELS_FORMATS_LAYOUT_H

/// \file
/// The f32 values that quantized weights stand for.
#ifndef LATHE_KERNELS_FORMATS_DEQUANTIZE_H
#define LATHE_KERNELS_FORMATS_DEQUANTIZE_H

#include "kernels/formats/BlockCodec.h"
#include "kernels/formats/Format.h"

namespace lathe::kernels {

/// Writes the `n` values of consecutive elements of one row to dst[0..n).
/// `src` holds n / blockElems blocks in ggml's layout, at any alignment; n is a
/// multiple of blockElems. Bit for bit what gguf.quants.dequantize of the
/// gguf Python package gives for every finite result. Thread-safe.
void dequantizeRow(Format format, const uint8_t *src, float *dst, int64_t n);

/// The same for one block already taken apart (quantized formats only):
/// blockElems values.
void dequantizeFields(Format format, const BlockFields &fields, float *dst);

} // namespace lathe::kernels

#endif // LATHE_KERNELS_FORMATS_DEQUANTIZE_H

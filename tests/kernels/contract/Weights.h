/// \file
/// The integers and scales of 32 consecutive weights, decoded from a GGUF row.
/// Private to the contract.
#ifndef LATHE_TESTS_KERNELS_CONTRACT_WEIGHTS_H
#define LATHE_TESTS_KERNELS_CONTRACT_WEIGHTS_H

#include "tests/kernels/contract/Contract.h"

namespace lathe::contract {

/// 32 consecutive weights of a quantized format.
struct WeightBlock {
  /// The integer of each weight, offset or table applied where the gemm table
  /// calls it w, else q.
  i32 w[32];
  /// Scale of the (super-)block.
  f32 d;
  /// m of Q4_1 and Q5_1; dmin of the K formats that have one.
  f32 m;
  /// Integer scales: of each half, or [0] alone for the whole 32. Offsets (of
  /// Q3_K and IQ4_XS) are taken off.
  i32 sc[2];
  /// Integer minimums, likewise.
  i32 mn[2];
};

/// Weights 32·index … 32·index + 31 of a row of a quantized format.
WeightBlock decodeWeights(Format format, const u8 *weightRow, u64 index);

/// Element `index` of a row of F32, F16 or BF16.
f32 decodeFloat(Format format, const u8 *weightRow, u64 index);

} // namespace lathe::contract

#endif // LATHE_TESTS_KERNELS_CONTRACT_WEIGHTS_H

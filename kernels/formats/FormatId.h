/// \file
/// The numbers of the weight formats, for generated kernels. Freestanding:
/// includes kernels/abi/Types.h only. What is known about each: Format.h.
#ifndef LATHE_KERNELS_FORMATS_FORMATID_H
#define LATHE_KERNELS_FORMATS_FORMATID_H

#include "kernels/abi/Types.h"

namespace lathe::kernels {

/// A weight format. The numbers are stored in engines: append only.
enum class Format : u8 {
  F32,
  F16,
  BF16,
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  Q8_0,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  IQ4_NL,
  IQ4_XS,
};

} // namespace lathe::kernels

#endif // LATHE_KERNELS_FORMATS_FORMATID_H

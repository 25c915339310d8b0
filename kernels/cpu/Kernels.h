/// \file
/// Everything that printed code for a CPU includes. Freestanding: only headers
/// of kernels/; undefined symbols are at most memcpy, memmove and memset. The
/// ISA layer is chosen by LATHE_ISA_GENERIC, LATHE_ISA_AVX2 or
/// LATHE_ISA_AVX512 (with LATHE_SIMD_EMULATE: avx512 in plain vectors), and
/// compiled with the flags that kernels/cpu/README.md lists.
#ifndef LATHE_KERNELS_CPU_KERNELS_H
#define LATHE_KERNELS_CPU_KERNELS_H

#include "kernels/cpu/Attention.h"
#include "kernels/cpu/Barrier.h"
#include "kernels/cpu/Contract.h"
#include "kernels/cpu/Embed.h"
#include "kernels/cpu/RopeAppend.h"
#include "kernels/cpu/Rowwise.h"
#include "kernels/cpu/Step.h"
#include "kernels/cpu/gemm/Gemm.h"
#include "kernels/cpu/pick/Pick.h"

#endif // LATHE_KERNELS_CPU_KERNELS_H

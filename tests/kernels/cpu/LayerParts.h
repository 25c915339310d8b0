/// \file
/// The tables that make up a Layer, one per source of a layer library. Names
/// carry the layer, so that all layers fit into one program.
#ifndef LATHE_TESTS_KERNELS_CPU_LAYERPARTS_H
#define LATHE_TESTS_KERNELS_CPU_LAYERPARTS_H

#include "kernels/cpu/Kernels.h"
#include "tests/kernels/cpu/Cases.h"

namespace lathe::tests::LATHE_ISA {

using namespace lathe::kernels;

/// One printed kernel entry: lathe_kernel_<id> of generated code.
#define LATHE_ENTRY(name, skeleton, K)                                         \
  void name(const StepArgs *args, const void *const *operands, u32 rows,       \
            u32 thread, u32 threads) {                                         \
    skeleton<K>(args, operands, rows, thread, threads);                        \
  }

extern const CaseList<GemmCase> gemmCases;
extern const CaseList<RowwiseCase> rowwiseCases;
extern const CaseList<EmbedCase> embedCases;
extern const CaseList<AttentionCase> attentionCases;
extern const CaseList<PickCase> pickCases;

} // namespace lathe::tests::LATHE_ISA

#endif // LATHE_TESTS_KERNELS_CPU_LAYERPARTS_H

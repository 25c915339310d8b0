// The pick cases: K of one block and more, vocabularies that end inside a group
// or hold a few streams.

#include "tests/kernels/cpu/LayerParts.h"

namespace lathe::tests::LATHE_ISA {

template <i64 vocab, i64 elems> struct Pick {
  static constexpr i64 n = vocab, k = elems;
  static LATHE_ENTRY(run, pick, Pick);
};

template <i64 n, i64 k> constexpr PickCase describe() {
  return {n, k, Pick<n, k>::run};
}

constexpr PickCase pickTable[] = {
    describe<5, 32>(),    describe<100, 64>(),   describe<1000, 96>(),
    describe<777, 256>(), describe<4096, 576>(), describe<2050, 640>(),
};

const CaseList<PickCase> pickCases = {pickTable,
                                      sizeof(pickTable) / sizeof(pickTable[0])};

} // namespace lathe::tests::LATHE_ISA

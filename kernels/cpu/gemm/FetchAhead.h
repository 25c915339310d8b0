/// \file
/// Fetching a gemm's first weights while the launches before it, which read
/// little, keep the threads busy.
#ifndef LATHE_KERNELS_CPU_GEMM_FETCHAHEAD_H
#define LATHE_KERNELS_CPU_GEMM_FETCHAHEAD_H

#include "kernels/cpu/gemm/Gemm.h"

namespace lathe::kernels::inline LATHE_ISA {

/// Bytes of each stream that are fetched: about what can be in flight.
inline constexpr i64 firstBytes = 2048;

/// Fetches where gemm<K>() of this thread starts to read, for one row.
/// `weights` has one operand per segment.
template <typename K>
void fetchFirstWeights(const void *const *weights, u32 thread, u32 threads) {
  using Segments = typename K::Segments;
  constexpr u32 count = Segments::size;
  i64 total = 0;
  forEach<count>(
      [&]<u32 s>() { total += ceilDivide(TypeAt<s, Segments>::n, 32); });
  Range mine = splitEvenly(total, thread, threads);
  i64 firstUnit = 0;
  bool found = false;
  forEach<count>([&]<u32 s>() {
    using Run = SegmentRun<K, TypeAt<s, Segments>>;
    i64 begin = mine.begin > firstUnit ? mine.begin - firstUnit : 0;
    i64 end =
        mine.end - firstUnit < Run::units ? mine.end - firstUnit : Run::units;
    firstUnit += Run::units;
    if (found || begin >= end)
      return;
    found = true;
    constexpr i64 unitBytes = Run::unitGroups * Run::groupBlocks *
                              i64(sizeof(typename Run::Tile::Block));
    const u8 *at = static_cast<const u8 *>(weights[s]) + begin * unitBytes;
    i64 run = (end - begin) / streams * unitBytes;
    for (u32 stream = 0; stream < streams && (stream == 0 || run > 0); ++stream)
      for (i64 byte = 0; byte < firstBytes; byte += 64)
        prefetch(at + stream * run + byte);
  });
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_GEMM_FETCHAHEAD_H

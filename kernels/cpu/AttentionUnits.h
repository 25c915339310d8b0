/// \file
/// How the units of attention, one item of the work list for one KV head, are
/// dealt out to threads.
#ifndef LATHE_KERNELS_CPU_ATTENTIONUNITS_H
#define LATHE_KERNELS_CPU_ATTENTIONUNITS_H

#include "kernels/cpu/Skeleton.h"

namespace lathe::kernels::inline LATHE_ISA {

/// Calls body(item, KV head) for the units of one thread. One by one: the list
/// has the longest items first.
template <typename Body>
LATHE_INLINE void forAttentionUnits(const AttentionWorkList &list, i64 kvHeads,
                                    u32 thread, u32 threads, Body body) {
  i64 units = i64(list.count) * kvHeads;
  for (i64 unit = thread; unit < units; unit += threads)
    body(unit / kvHeads, unit % kvHeads);
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_ATTENTIONUNITS_H

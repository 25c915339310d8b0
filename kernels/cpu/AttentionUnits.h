/// \file
/// How the units of attention, one item of the work list for one KV head, are
/// dealt out to threads.
#ifndef LATHE_KERNELS_CPU_ATTENTIONUNITS_H
#define LATHE_KERNELS_CPU_ATTENTIONUNITS_H

#include "kernels/cpu/Skeleton.h"

namespace lathe::kernels::inline LATHE_ISA {

/// A unit of one thread: an item for query heads of one KV head.
struct AttentionUnit {
  i64 item; ///< Of the work list.
  i64 kvHead;
  Range heads; ///< Query heads, of all of the kernel's.
};

/// Calls body(unit) for the units of one thread. K gives heads, kvHeads and
/// headDim. One by one: the list has the longest items first. Threads that
/// would have nothing to do share the query heads of an item that folds.
template <typename K, typename Body>
LATHE_INLINE void forAttentionUnits(const AttentionWorkList &list, u32 thread,
                                    u32 threads, Body body) {
  constexpr i64 perKv = K::heads / K::kvHeads;
  i64 units = i64(list.count) * K::kvHeads, parts = 1;
  // A head's activation blocks have one producer.
  if (K::headDim % 32 == 0 && units > 0 && units < i64(threads)) {
    parts = i64(threads) / units;
    parts = parts < perKv ? parts : perKv;
  }
  for (i64 at = thread; at < units * parts; at += threads) {
    i64 item = at / parts / K::kvHeads, kvHead = at / parts % K::kvHeads;
    bool folds = list.items[item].partial == ~0u;
    if (!folds && at % parts != 0)
      continue;
    Range heads = splitEvenly(perKv, u32(at % parts), folds ? u32(parts) : 1);
    heads.begin += kvHead * perKv;
    heads.end += kvHead * perKv;
    body(AttentionUnit{item, kvHead, heads});
  }
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_ATTENTIONUNITS_H

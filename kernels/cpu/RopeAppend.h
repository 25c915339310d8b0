/// \file
/// Skeleton `rope_append`: QK-norm, rotary embedding, query scale, and KV
/// append (kernel.rope_append of ir/kernel/KernelOps.td). Operands: q f32
/// [T, heads * headDim], k and v f32 [T, kvHeads * headDim], the rope table
/// f32 [context, ropePairs, 2] (absent if ropePairs is 0), the q-norm and
/// k-norm weights f32 [headDim] (absent unless qkNorm), the layer's K and V in
/// page 0 of the group's pool, q out f32 [T, heads * headDim].
#ifndef LATHE_KERNELS_CPU_ROPEAPPEND_H
#define LATHE_KERNELS_CPU_ROPEAPPEND_H

#include "kernels/cpu/AttentionUnits.h"
#include "kernels/cpu/KvCache.h"
#include "kernels/cpu/Math.h"

namespace lathe::kernels::inline LATHE_ISA {

/// The rope table's entry for one position, cosines and sines apart.
template <i64 pairs> struct RopeEntry {
  static constexpr i64 padded = ceilDivide(pairs < 1 ? 1 : pairs, 16) * 16;
  alignas(64) f32 cosine[padded] = {};
  alignas(64) f32 sine[padded] = {};

  explicit RopeEntry(const f32 *entry) {
    for (i64 i = 0; i < pairs; ++i) {
      cosine[i] = entry[2 * i];
      sine[i] = entry[2 * i + 1];
    }
  }
};

/// Rotates the first 2 * pairs values of a head in place: pairs (i, i + pairs)
/// if `inHalves`, else (2i, 2i + 1).
template <i64 pairs, bool inHalves>
inline void rotate(f32 *head, const RopeEntry<pairs> &entry) {
  constexpr i64 padded = RopeEntry<pairs>::padded;
  constexpr i64 step = inHalves ? 1 : 2, second = inHalves ? pairs : 1;
  alignas(64) f32 a[padded] = {}, b[padded] = {};
  for (i64 i = 0; i < pairs; ++i) {
    a[i] = head[step * i];
    b[i] = head[step * i + second];
  }
  for (i64 i = 0; i < padded; i += width) {
    Floats x0 = load<Floats>(a + i), x1 = load<Floats>(b + i);
    Floats c = load<Floats>(entry.cosine + i), s = load<Floats>(entry.sine + i);
    store(a + i, fma(x0, c, -(x1 * s)));
    store(b + i, fma(x1, c, x0 * s));
  }
  for (i64 i = 0; i < pairs; ++i) {
    head[step * i] = a[i];
    head[step * i + second] = b[i];
  }
}

/// Norms one head in place.
template <i64 headDim>
inline void normHead(f32 *head, const f32 *weight, f32 epsilon) {
  Floats factor = Floats::splat(rmsFactor(head, headDim, epsilon));
  for (i64 d = 0; d < headDim; d += width)
    storeFirst(head + d,
               loadFirst(head + d, headDim - d) * factor *
                   loadFirst(weight + d, headDim - d),
               headDim - d);
}

/// One rope_append kernel in one step.
template <typename K> struct RopeAppendRun {
  using Tile = KvTile<K::element, K::headDim>;
  static constexpr i64 headDim = K::headDim, pairs = K::ropePairs;
  static constexpr i64 padded = ceilDivide(headDim, 16) * 16;
  static constexpr u32 tableAt = 3, normAt = tableAt + (pairs > 0 ? 1 : 0);
  static constexpr u32 poolAt = normAt + (K::qkNorm ? 2 : 0);

  const StepArgs *args;
  const void *const *operands;

  using Entry = RopeEntry<pairs>;

  /// The table's entry for a row's position.
  Entry entryOf(i64 row) const {
    const f32 *at = nullptr;
    if constexpr (pairs > 0)
      at = static_cast<const f32 *>(operands[tableAt]) +
           i64(args->positions[row]) * pairs * 2;
    return Entry(at);
  }

  /// Writes some queries of a row.
  void prepareQueries(i64 row, Range heads, const Entry &entry) const {
    const f32 *q = static_cast<const f32 *>(operands[0]);
    f32 *out = static_cast<f32 *>(const_cast<void *>(operands[poolAt + 2]));
    alignas(64) f32 head[padded] = {};
    for (i64 h = heads.begin; h < heads.end; ++h) {
      i64 offset = (row * K::heads + h) * headDim;
      prepare(q + offset, normAt, entry, head);
      for (i64 d = 0; d < headDim; d += width)
        storeFirst(out + offset + d,
                   load<Floats>(head + d) * Floats::splat(K::qScale),
                   headDim - d);
    }
  }

  /// Writes a row's K and V of one head into its page.
  void append(i64 row, i64 kvHead, const Entry &entry) const {
    const f32 *k = static_cast<const f32 *>(operands[1]);
    const f32 *v = static_cast<const f32 *>(operands[2]);
    i64 position = args->positions[row];
    const KvGroupArgs &group = args->groups[K::group];
    u64 page = pageOf(group, args->rowSequence[row], position);
    i64 token = position % i64(pageTokens);
    i64 offset = (row * K::kvHeads + kvHead) * headDim;
    auto tile = [&](u32 operand) {
      return const_cast<u8 *>(
          tileInPage<K>(group, operands[operand], page, kvHead));
    };
    alignas(64) f32 head[padded] = {};
    prepare(k + offset, normAt + 1, entry, head);
    Tile::putKey(tile(poolAt), token, head);
    __builtin_memcpy(head, v + offset, headDim * sizeof(f32));
    Tile::putValue(tile(poolAt + 1), token, head);
  }

private:
  /// A head, normed and rotated.
  void prepare(const f32 *from, u32 norm, const Entry &entry, f32 *head) const {
    __builtin_memcpy(head, from, headDim * sizeof(f32));
    if constexpr (K::qkNorm)
      normHead<headDim>(head, static_cast<const f32 *>(operands[norm]),
                        K::epsilon);
    if constexpr (pairs > 0)
      rotate<pairs, K::ropeHalves>(head, entry);
  }
};

/// The part of thread `thread` of all (row, KV head) pairs.
template <typename K>
void ropeAppend(const StepArgs *args, const void *const *operands, u32 rows,
                u32 thread, u32 threads) {
  RopeAppendRun<K> run = {args, operands};
  Range range = splitEvenly(i64(rows) * K::kvHeads, thread, threads);
  for (i64 at = range.begin; at < range.end; ++at) {
    i64 row = at / K::kvHeads, kvHead = at % K::kvHeads;
    auto entry = run.entryOf(row);
    run.prepareQueries(row, splitEvenly(K::heads, u32(kvHead), K::kvHeads),
                       entry);
    run.append(row, kvHead, entry);
  }
}

/// What thread `thread`'s own units of the attention that follows read: their
/// rows' queries, into this thread's copy of q out, and the step's K and V in
/// their chunks. So attention may start without waiting for other threads.
/// Where the units of several threads cover a chunk for the same head, each
/// writes the same bytes.
template <typename K>
void ropeAppendOwned(const StepArgs *args, const void *const *operands, u32,
                     u32 thread, u32 threads) {
  RopeAppendRun<K> run = {args, operands};
  const AttentionWorkList &list = args->attentionWork[K::group];
  forAttentionUnits<K>(list, thread, threads, [&](const AttentionUnit &unit) {
    const AttentionWork &item = list.items[unit.item];
    for (i64 row = 0; row < i64(item.rowCount); ++row)
      run.prepareQueries(item.firstRow + row, unit.heads,
                         run.entryOf(item.firstRow + row));
    i64 begin = i64(item.firstChunk) * K::chunk;
    i64 end = begin + i64(item.chunkCount) * K::chunk;
    for (i64 row = args->sequenceStarts[item.sequence];
         row < i64(args->sequenceStarts[item.sequence + 1]); ++row)
      if (args->positions[row] >= begin && args->positions[row] < end)
        run.append(row, unit.kvHead, run.entryOf(row));
  });
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_ROPEAPPEND_H

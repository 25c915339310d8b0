/// \file
/// Skeleton `gemm`: x · Wᵀ with epilogues, over segments of columns
/// (kernel.gemm of ir/kernel/KernelOps.td). The printed structure gives k,
/// input and Segments; operands are x, then one weight per segment, then per
/// segment its sides, then one output per segment.
///
/// Threads split the concatenated columns in *units* of 32 outputs: two groups
/// of 16 weight rows, four if the segment is paired. A row's result depends on
/// neither the split nor on how rows are put into tiles.
#ifndef LATHE_KERNELS_CPU_GEMM_GEMM_H
#define LATHE_KERNELS_CPU_GEMM_GEMM_H

#include "kernels/cpu/Quantize.h"
#include "kernels/cpu/Skeleton.h"
#include "kernels/cpu/gemm/FloatTile.h"
#include "kernels/cpu/gemm/QuantTile.h"

namespace lathe::kernels::inline LATHE_ISA {

/// The tile of a format.
template <Format format> struct TileOf {
  using Type = QuantTile<format>;
};
template <> struct TileOf<Format::F32> {
  using Type = FloatTile<Format::F32>;
};
template <> struct TileOf<Format::F16> {
  using Type = FloatTile<Format::F16>;
};
template <> struct TileOf<Format::BF16> {
  using Type = FloatTile<Format::BF16>;
};

/// Weight groups read at once for one activation row, far apart: more streams
/// in flight use more of the memory's bandwidth. Fetching them ahead is left to
/// the hardware: told to by prefetches, it was a fifth slower (Zen 4).
inline constexpr u32 streams = 2;

/// One segment of a gemm, for one thread.
template <typename K, typename Seg> struct SegmentRun {
  using Tile = typename TileOf<Seg::format>::Type;
  using Block = typename Tile::Block;
  using Item = typename Tile::Item;
  using Input = typename Tile::Input;
  static_assert((K::input == Store::F32) ==
                    (Seg::format == Format::F32 || Seg::format == Format::F16 ||
                     Seg::format == Format::BF16),
                "float weights take f32 activations, quantized ones q8");

  static constexpr i64 units = ceilDivide(Seg::n, 32);
  static constexpr i64 unitGroups = Seg::paired ? 4 : 2;
  static constexpr i64 groups = (Seg::paired ? 2 : 1) * ceilDivide(Seg::n, 16);
  static constexpr i64 unitRows = 16 * unitGroups;
  static constexpr i64 items = Tile::itemsOf(K::k);
  static constexpr i64 groupBlocks = items / Tile::blockItems;
  /// Elements of `Input` from one row to the next.
  static constexpr i64 inputStride = K::input == Store::F32 ? K::k : K::k / 32;
  /// Many rows take a long k in slices of so many items, so that a slice of a
  /// weight group stays in L1 and one of many rows' activations in L2. The
  /// accumulators wait in memory meanwhile.
  static constexpr i64 sliceItems =
      items <= Tile::wholeItems ? items : Tile::sliceItems;
  static constexpr bool sliced = sliceItems < items;
  /// Rows whose activations are prepared together: about half of a small L2.
  static constexpr i64 panelRows = [] {
    i64 rows = (128 << 10) / (sliceItems * i64(sizeof(Item))) / 8 * 8;
    return rows < 8 ? 8 : rows > 128 ? 128 : rows;
  }();
  /// Up to so many rows take k whole: their weights are read but once, and
  /// memory likes long streams.
  static constexpr i64 wholeRows = 8;
  static constexpr i64 panelItems = [] {
    i64 slices = panelRows * sliceItems, whole = wholeRows * items;
    return slices > whole ? slices : whole;
  }();
  /// Units whose accumulators wait together: a quarter of a small L2. All of
  /// the panel's activations are prepared again for each such run of units.
  static constexpr i64 waitingUnits = [] {
    i64 units = (256 << 10) / (panelRows * unitRows * i64(sizeof(f32)));
    return !sliced || units < 1 ? 1 : units;
  }();

  const Block *weight;
  const void *const *sides;
  void *out;

  void run(const Input *x, i64 rows, Range range) const {
    alignas(64) Item panel[panelItems];
    for (i64 row = 0; row < rows; row += panelRows) {
      i64 count = rows - row < panelRows ? rows - row : panelRows;
      const Input *from = x + row * inputStride;
      if constexpr (sliced)
        if (count > wholeRows) {
          runSliced(panel, from, count, row, range);
          continue;
        }
      prepare(panel, from, count, 0, items);
      if (count == 1) {
        runStreams(panel, row, range);
        continue;
      }
      for (i64 unit = range.begin; unit < range.end; ++unit)
        forTiles(count, [&]<u32 M>(i64 at) __attribute__((always_inline)) {
          alignas(64) f32 sums[M * unitRows];
          addUnit<M>(panel + at * items, unit, 0, items, sums);
          finish(sums, M, row + at, unit);
        });
    }
  }

private:
  /// Calls body<M>(first row) for tiles that cover `count` rows.
  template <typename Body>
  static LATHE_INLINE void forTiles(i64 count, Body body) {
    i64 at = 0;
    if constexpr (Tile::maxRows >= 8)
      for (; at + 8 <= count; at += 8)
        body.template operator()<8>(at);
    for (; at + 4 <= count; at += 4)
      body.template operator()<4>(at);
    if (at + 2 <= count) {
      body.template operator()<2>(at);
      at += 2;
    }
    if (at < count)
      body.template operator()<1>(at);
  }

  const Block *groupOf(i64 group) const { return weight + group * groupBlocks; }

  /// One row times all units of the range: equal runs of units as streams far
  /// apart, then the groups of the few units that are left.
  void runStreams(const Item *a, i64 row, Range range) const {
    i64 run = (range.end - range.begin) / streams;
    // The last unit may lack groups; then it is left.
    if (range.end == units && groups < units * unitGroups && run > 0 &&
        range.begin + run * streams == range.end)
      --run;
    alignas(64) f32 sums[streams * unitRows];
    const Block *at[streams];
    f32 *to[streams];
    for (i64 i = 0; i < run; ++i) {
      for (i64 g = 0; g < unitGroups; ++g) {
        for (u32 s = 0; s < streams; ++s) {
          at[s] = groupOf((range.begin + s * run + i) * unitGroups + g);
          to[s] = sums + s * unitRows + 16 * g;
        }
        Tile::template run<1, streams>(at, items, a, to, 0, false);
      }
      for (u32 s = 0; s < streams; ++s)
        finish(sums + s * unitRows, 1, row, range.begin + s * run + i);
    }

    i64 unit = range.begin + run * streams;
    i64 left = (range.end - unit) * unitGroups;
    if (left == 0)
      return;
    if (unit * unitGroups + left > groups) {
      left = groups - unit * unitGroups;
      __builtin_memset(sums, 0, sizeof(sums));
    }
    for (i64 g = 0; g < left; g += streams) {
      for (u32 s = 0; s < streams; ++s) {
        // Beyond the last group it is done again.
        i64 group = g + s < left ? g + s : left - 1;
        at[s] = groupOf(unit * unitGroups + group);
        to[s] = sums + 16 * group;
      }
      Tile::template run<1, streams>(at, items, a, to, 0, false);
    }
    for (i64 i = 0; unit + i < range.end; ++i)
      finish(sums + i * unitRows, 1, row, unit + i);
  }

  /// Items [first, first + count) of `rows` rows, tile by tile.
  static LATHE_INLINE void prepare(Item *panel, const Input *x, i64 rows,
                                   i64 first, i64 count) {
    forTiles(rows, [&]<u32 M>(i64 at) __attribute__((always_inline)) {
      Tile::template prepare<M>(x + at * inputStride, inputStride, first, count,
                                panel + at * count);
    });
  }

  /// `count` rows times all units of the range, slice by slice of k.
  void runSliced(Item *panel, const Input *x, i64 count, i64 row,
                 Range range) const {
    alignas(64) f32 sums[waitingUnits * panelRows * unitRows];
    for (i64 first = range.begin; first < range.end; first += waitingUnits) {
      i64 end =
          range.end - first < waitingUnits ? range.end : first + waitingUnits;
      for (i64 item = 0; item < items; item += sliceItems) {
        i64 slice = items - item < sliceItems ? items - item : sliceItems;
        prepare(panel, x, count, item, slice);
        for (i64 unit = first; unit < end; ++unit) {
          f32 *unitSums = sums + (unit - first) * panelRows * unitRows;
          forTiles(count, [&]<u32 M>(i64 at) __attribute__((always_inline)) {
            f32 *to = unitSums + at * unitRows;
            addUnit<M>(panel + at * slice, unit, item, slice, to);
            if (item + slice == items)
              finish(to, M, row + at, unit);
          });
        }
      }
    }
  }

  /// Items [first, first + count) of M rows times one unit, added to `sums` if
  /// they are not the first.
  template <u32 M>
  LATHE_INLINE void addUnit(const Item *a, i64 unit, i64 first, i64 count,
                            f32 *sums) const {
    for (i64 g = 0; g < unitGroups; ++g) {
      i64 group = unit * unitGroups + g;
      f32 *to = sums + 16 * g;
      if (__builtin_expect(group < groups, 1)) {
        const Block *at = groupOf(group) + first / Tile::blockItems;
        Tile::template run<M, 1>(&at, count, a, &to, unitRows, first != 0);
      } else {
        // The last unit lacks groups.
        for (u32 m = 0; m < M; ++m)
          __builtin_memset(to + m * unitRows, 0, 64);
      }
    }
  }

  /// The epilogue of `count` rows of a unit.
  __attribute__((noinline)) void finish(const f32 *sums, i64 count, i64 row,
                                        i64 unit) const {
    i64 column = unit * 32;
    i64 valid = Seg::n - column < 32 ? Seg::n - column : 32;
    for (i64 m = 0; m < count; ++m, sums += unitRows) {
      SideBlocks<Seg> side;
      side.find(sides, Seg::n, row + m, column, valid);
      alignas(64) f32 values[32];
      LATHE_UNROLL
      for (u32 c = 0; c < 32; c += width) {
        Floats value;
        if constexpr (Seg::paired) {
          const f32 *pair = sums + c / 16 * 32 + c % 16;
          value = applyMap<Seg>(side.blocks, c, load<Floats>(pair),
                                load<Floats>(pair + 16));
        } else {
          value = applyMap<Seg>(side.blocks, c, load<Floats>(sums + c));
        }
        store(values + c, value);
      }
      storeUnit(values, row + m, unit, valid);
    }
  }

  LATHE_INLINE void storeUnit(f32 *values, i64 row, i64 unit, i64 valid) const {
    if constexpr (Seg::store == Store::F32) {
      f32 *to = static_cast<f32 *>(out) + row * Seg::n + unit * 32;
      if (__builtin_expect(valid == 32, 1))
        __builtin_memcpy(to, values, 32 * sizeof(f32));
      else
        for (i64 c = 0; c < valid; ++c)
          to[c] = values[c];
    } else {
      for (i64 c = valid; c < 32; ++c)
        values[c] = 0;
      quantizeBlock(values,
                    static_cast<ActivationBlock *>(out) + row * units + unit);
    }
  }
};

/// The part of thread `thread` of a gemm over `rows` rows.
template <typename K>
void gemm(const StepArgs *, const void *const *operands, u32 rows, u32 thread,
          u32 threads) {
  using Segments = typename K::Segments;
  constexpr u32 count = Segments::size;
  i64 total = 0;
  forEach<count>(
      [&]<u32 s>() { total += ceilDivide(TypeAt<s, Segments>::n, 32); });
  Range mine = splitEvenly(total, thread, threads);

  i64 firstUnit = 0;
  u32 sideAt = 1 + count, outAt = 1 + count;
  forEach<count>([&]<u32 s>() { outAt += TypeAt<s, Segments>::sideCount; });
  forEach<count>([&]<u32 s>() {
    using Seg = TypeAt<s, Segments>;
    using Run = SegmentRun<K, Seg>;
    Range range = {mine.begin - firstUnit, mine.end - firstUnit};
    range.begin = range.begin < 0 ? 0 : range.begin;
    range.end = range.end > Run::units ? Run::units : range.end;
    if (range.begin < range.end) {
      Run run = {static_cast<const typename Run::Block *>(operands[1 + s]),
                 operands + sideAt, const_cast<void *>(operands[outAt + s])};
      run.run(static_cast<const typename Run::Input *>(operands[0]), rows,
              range);
    }
    firstUnit += Run::units;
    sideAt += Seg::sideCount;
  });
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_GEMM_GEMM_H

/// \file
/// Skeleton `pick`: the token of each row of hidden states, without all of its
/// logits (kernel.pick of ir/kernel/KernelOps.td). The result is
/// pickFromLogits() of the head's logits, bit for bit, or token -1: then the
/// runtime has to do that itself.
///
/// Operands are x (q8 [R, k]), the head (Q8_0 [n, k]), the same coarse (Q5_0),
/// the coarse rows' errors f32 [n], bounds f32 [R, n] and state [R] of
/// pickStateBytes as scratch, and the PickResults [R].
///
/// Threads split the head's 16-row groups. The scan, a gemm with the coarse
/// head, leaves an upper bound of each logit (docs/numerics.md, "Picking from a
/// coarse head"); whatever a bound does not rule out is computed by the very
/// tile of the head's gemm. A bound only decides what is computed, never what
/// wins.
#ifndef LATHE_KERNELS_CPU_PICK_PICK_H
#define LATHE_KERNELS_CPU_PICK_PICK_H

#include "kernels/cpu/Barrier.h"
#include "kernels/cpu/Math.h"
#include "kernels/cpu/gemm/Gemm.h"
#include "kernels/cpu/pick/State.h"
#include "kernels/sample/Edit.h"
#include "kernels/sample/Noise.h"

namespace lathe::kernels::inline LATHE_ISA {

/// How many candidates a row's list has to keep: for a draw from all, only the
/// largest logit, from which min-p counts.
inline u32 listLimit(const PickArgs &args) {
  return args.temperature == 0 || args.topK == 0 ? 1 : args.topK;
}

/// Whether the row has to be drawn from all of its tokens.
inline bool drawsFromAll(const PickArgs &args) {
  return args.temperature != 0 && args.topK == 0;
}

/// Whether the arguments are ones for which the bounds hold: an edit must not
/// make a lower logit the higher one.
inline bool isCovered(const PickArgs &args) {
  if (!(args.temperature >= 0) || args.temperature == __builtin_inff() ||
      args.topK > maxPickTopK || args.minP != args.minP)
    return false;
  for (u64 i = 0; i < args.editCount; ++i) {
    const PickEdit &edit = args.edits[i];
    if (!(edit.factor > 0) || edit.factor == __builtin_inff() ||
        edit.addend != edit.addend ||
        (i > 0 && edit.token <= args.edits[i - 1].token))
      return false;
  }
  return true;
}

/// One row, in one thread.
template <typename K> struct PickRow {
  using Head = QuantTile<Format::Q8_0>;
  using Coarse = QuantTile<Format::Q5_0>;
  static constexpr i64 blocks = K::k / 32, groups = ceilDivide(K::n, 16);

  const PickArgs &args;
  const ActivationBlock *x;
  const Head::Block *head;
  const Coarse::Block *coarse;
  const f32 *errors;
  f32 *bounds;
  PickState &state;
  /// This thread's groups.
  Range range;

  /// Empties the state; one thread, before the first barrier.
  void clear() const {
    state.lock = 0;
    state.isOpen = 0;
    state.exactGroups = 0;
    state.best.clear();
    state.list.limit = listLimit(args);
    state.list.count = 0;
  }

  bool isOpen() const {
    return __atomic_load_n(&state.isOpen, __ATOMIC_RELAXED) != 0;
  }

  /// The bounds of this thread's tokens.
  void scan() const {
    alignas(64) Prepared items[blocks];
    Coarse::template prepare<1>(x, 0, 0, blocks, items);
    f32 length = lengthBound();
    i64 run = (range.end - range.begin) / streams;
    for (i64 i = 0; i < run; ++i) {
      i64 group[streams];
      bool any = false;
      for (u32 s = 0; s < streams; ++s) {
        group[s] = range.begin + s * run + i;
        any |= allowedOf(group[s]) != 0;
      }
      if (any)
        scanGroups<streams>(group, items, length);
    }
    for (i64 group = range.begin + streams * run; group < range.end; ++group)
      scanGroups<1>(&group, items, length);
  }

  /// Edits and the allowed set, then the first candidates. After a barrier, so
  /// that the state is clear.
  void start() const {
    if (!isCovered(args) || !editBounds())
      __atomic_store_n(&state.isOpen, 1, __ATOMIC_RELAXED);
    if (isOpen())
      return;
    PickList list = {listLimit(args), 0, {}};
    // The bounds of the list's size that are largest give a good threshold.
    forBounds([&] { return list.threshold(); },
              [&](i64 group, u32 lanes) {
                for (; lanes != 0; lanes &= lanes - 1) {
                  i32 token = i32(16 * group) + __builtin_ctz(lanes);
                  list.offer({bounds[token], token});
                }
              });
    f32 least = list.threshold();
    list.count = 0;
    collect(least, list);
    merge(list);
  }

  /// All candidates that the threads' first ones leave. After a barrier.
  void finishList() const {
    if (isOpen())
      return;
    PickList list = sharedList();
    collect(list.threshold(), list);
    merge(list);
  }

  /// The draw from all tokens. After a barrier.
  void draw() const {
    if (isOpen() || state.list.count == 0)
      return;
    f32 maximum = state.list.items[0].logit;
    PickBest best;
    best.clear();
    offerDraw(state.list.items[0], maximum, best);
    f32 floor =
        args.minP > 0 ? minPFloor(maximum, args.minP) : -__builtin_inff();
    constexpr u32 room = 512;
    Drawn drawn[room];
    u32 count = 0;
    f64 temperature = f64(args.temperature);
    auto cut = [&] {
      // Below this even the largest noise is of no use.
      f64 exact = (best.score - largestNoise) * temperature;
      f32 below = f32(exact - 1e-5 * (exact < 0 ? -exact : exact));
      return below > floor ? below : floor;
    };
    forBounds(cut, [&](i64 group, u32 lanes) {
      for (u32 quad = 0; quad < 4; ++quad) {
        u32 four = lanes >> (4 * quad) & 15;
        if (four == 0)
          continue;
        NoiseWords words =
            noiseWords(args.seed, args.position, u32(4 * group) + quad);
        for (; four != 0; four &= four - 1) {
          u32 lane = u32(__builtin_ctz(four));
          i32 token = i32(16 * group + 4 * quad + lane);
          f64 scaled = f64(bounds[token]) / temperature;
          if (scaled + f64(gumbelBound(words.word[lane])) < best.score)
            continue;
          f64 score = scaled + gumbel(words.word[lane]);
          if (score < best.score)
            continue;
          drawn[count++] = {score, token};
          if (count == room) {
            evaluate(drawn, count, maximum, best);
            count = 0;
          }
        }
      }
    });
    evaluate(drawn, count, maximum, best);
    if (best.candidate.token < 0)
      return;
    PickLock lock(state);
    state.best.offer(best.score, best.candidate);
  }

  /// What was picked. After the last barrier, in one thread.
  PickResult result() const {
    if (isOpen() || state.list.count == 0)
      return {-1, 0, state.exactGroups};
    if (args.temperature == 0)
      return {state.list.items[0].token, state.list.items[0].logit,
              state.exactGroups};
    PickBest best = state.best;
    if (args.topK != 0)
      for (u32 i = 0; i < state.list.count; ++i)
        offerDraw(state.list.items[i], state.list.items[0].logit, best);
    return {best.candidate.token, best.candidate.logit, state.exactGroups};
  }

private:
  /// A token that may win a draw, and the most that it can reach.
  struct Drawn {
    f64 score;
    i32 token;
  };

  static i64 validOf(i64 group) {
    return K::n - 16 * group < 16 ? K::n - 16 * group : 16;
  }

  /// The bits of a group's 16 tokens that may be picked.
  u32 allowedOf(i64 group) const {
    if (!args.allowed)
      return 0xffff;
    return args.allowed[group / 2] >> (group % 2 * 16) & 0xffff;
  }

  /// At least the Euclidean length of the activations. Not finite if one is
  /// not.
  f32 lengthBound() const {
    f64 sum = 0;
    for (i64 block = 0; block < blocks; ++block) {
      i32 squares = 0;
      for (u32 i = 0; i < 32; ++i)
        squares += x[block].q[i] * x[block].q[i];
      sum += f64(x[block].d) * f64(x[block].d) * f64(squares);
    }
    // The last addend is for results that are denormal.
    return f32(__builtin_elementwise_sqrt(sum) * (1 + 0x1p-20) + 0x1p-80);
  }

  template <u32 S>
  void scanGroups(const i64 *group, const Prepared *items, f32 length) const {
    const Coarse::Block *at[S];
    alignas(64) f32 sums[16 * S];
    f32 *to[S];
    for (u32 s = 0; s < S; ++s) {
      at[s] = coarse + group[s] * blocks;
      to[s] = sums + 16 * s;
    }
    Coarse::template run<1, S>(at, blocks, items, to, 0, false);
    for (u32 s = 0; s < S; ++s)
      for (u32 i = 0; i < 16; i += width) {
        i64 token = 16 * group[s] + i, valid = K::n - token;
        if (valid > 0)
          storeFirst(bounds + token,
                     fma(loadFirst(errors + token, valid),
                         Floats::splat(length), load<Floats>(to[s] + i)),
                     valid);
      }
  }

  const PickEdit *editOf(i32 token) const {
    u64 low = 0, high = args.editCount;
    while (low < high) {
      u64 middle = (low + high) / 2;
      if (args.edits[middle].token < token)
        low = middle + 1;
      else
        high = middle;
    }
    return low < args.editCount && args.edits[low].token == token
               ? args.edits + low
               : nullptr;
  }

  /// False if a bound is no number to count on.
  bool editBounds() const {
    constexpr f32 infinity = __builtin_inff();
    if (args.allowed)
      for (i64 group = range.begin; group < range.end; ++group)
        for (i64 i = 0; i < validOf(group); ++i)
          if (!(allowedOf(group) >> i & 1))
            bounds[16 * group + i] = -infinity;
    for (u64 i = 0; i < args.editCount; ++i) {
      i64 token = args.edits[i].token;
      if (token >= 16 * range.begin && token < 16 * range.end)
        bounds[token] = applyEdit(args.edits[i], bounds[token]);
    }
    IntLanes bad = {};
    i64 end = 16 * range.end < K::n ? 16 * range.end : K::n;
    for (i64 token = 16 * range.begin; token < end; token += width)
      bad |= ~IntLanes(loadFirst(bounds + token, end - token).v < infinity);
    return __builtin_reduce_or(bad) == 0;
  }

  /// Calls body(group, lanes) for each of this thread's groups with bounds of
  /// at least threshold(), which may grow, other than -infinity.
  template <typename Threshold, typename Body>
  LATHE_INLINE void forBounds(Threshold threshold, Body body) const {
    for (i64 group = range.begin; group < range.end; ++group) {
      f32 least = threshold();
      if (validOf(group) == 16) {
        IntLanes any = {};
        LATHE_UNROLL
        for (u32 h = 0; h < halves; ++h) {
          FloatLanes v = load<Floats>(bounds + 16 * group + h * width).v;
          any |= (v >= least) & (v > -__builtin_inff());
        }
        if (__builtin_expect(__builtin_reduce_or(any) == 0, 1))
          continue;
      }
      u32 lanes = 0;
      for (i64 i = 0; i < validOf(group); ++i) {
        f32 bound = bounds[16 * group + i];
        lanes |= u32(bound >= least && bound > -__builtin_inff()) << i;
      }
      if (lanes != 0)
        body(group, lanes);
    }
  }

  /// Groups whose logits are computed together.
  struct Exact {
    const PickRow &row;
    alignas(64) Prepared items[blocks];
    const Head::Block *at[streams];
    i64 group[streams];
    alignas(64) f32 logits[16 * streams];
    u32 count = 0;

    explicit Exact(const PickRow &row) : row(row) {
      Head::template prepare<1>(row.x, 0, 0, blocks, items);
    }

    /// Fills `logits`: 16 per group that was added.
    void compute() {
      __atomic_fetch_add(&row.state.exactGroups, count, __ATOMIC_RELAXED);
      f32 *to[streams];
      for (u32 s = 0; s < streams; ++s) {
        at[s] = row.head + group[s < count ? s : 0] * blocks;
        to[s] = logits + 16 * s;
      }
      if (count == 1)
        Head::template run<1, 1>(at, blocks, items, to, 0, false);
      else
        Head::template run<1, streams>(at, blocks, items, to, 0, false);
    }

    PickCandidate candidate(u32 s, u32 lane) const {
      i32 token = i32(16 * group[s]) + i32(lane);
      f32 logit = logits[16 * s + lane];
      const PickEdit *edit = row.editOf(token);
      return {edit ? applyEdit(*edit, logit) : logit, token};
    }
  };

  /// Offers all of this thread's tokens with bounds of at least `least`.
  void collect(f32 least, PickList &list) const {
    Exact exact(*this);
    u32 lanes[streams];
    auto flush = [&] {
      if (exact.count == 0)
        return;
      exact.compute();
      for (u32 s = 0; s < exact.count; ++s)
        for (u32 left = lanes[s]; left != 0; left &= left - 1) {
          PickCandidate candidate = exact.candidate(s, __builtin_ctz(left));
          if (candidate.logit > -__builtin_inff())
            list.offer(candidate);
        }
      exact.count = 0;
    };
    forBounds(
        [&] {
          f32 now = list.threshold();
          return now > least ? now : least;
        },
        [&](i64 group, u32 mask) {
          exact.group[exact.count] = group;
          lanes[exact.count++] = mask;
          if (exact.count == streams)
            flush();
        });
    flush();
  }

  PickList sharedList() const {
    PickLock lock(state);
    return state.list;
  }

  void merge(const PickList &list) const {
    PickLock lock(state);
    for (u32 i = 0; i < list.count; ++i)
      state.list.offer(list.items[i]);
  }

  /// Offers a candidate of the draw unless min-p is against it.
  void offerDraw(PickCandidate candidate, f32 maximum, PickBest &best) const {
    if (args.minP > 0 && candidate.logit != maximum &&
        expScalar(candidate.logit - maximum) < args.minP)
      return;
    best.offer(f64(candidate.logit) / f64(args.temperature) +
                   noiseOf(args.seed, args.position, u32(candidate.token)),
               candidate);
  }

  /// Computes the tokens of a list, the most promising first, as long as they
  /// may win.
  void evaluate(Drawn *drawn, u32 count, f32 maximum, PickBest &best) const {
    Exact exact(*this);
    u32 lanes[streams];
    while (count != 0) {
      // The first ones alone: they lower what the others have to beat.
      exact.count = 0;
      for (u32 s = 0; s < streams && count != 0; ++s) {
        u32 top = 0;
        for (u32 i = 1; i < count; ++i)
          top = drawn[i].score > drawn[top].score ? i : top;
        if (drawn[top].score < best.score) {
          count = 0;
          break;
        }
        i32 token = drawn[top].token;
        exact.group[exact.count] = token / 16;
        lanes[exact.count++] = u32(token % 16);
        drawn[top] = drawn[--count];
      }
      if (exact.count == 0)
        return;
      exact.compute();
      for (u32 s = 0; s < exact.count; ++s) {
        PickCandidate candidate = exact.candidate(s, lanes[s]);
        if (candidate.logit > -__builtin_inff())
          offerDraw(candidate, maximum, best);
      }
    }
  }
};

/// Thread `thread`'s part of the picks of `rows` rows. All threads of the team
/// run it at the same time.
template <typename K>
void pick(const StepArgs *args, const void *const *operands, u32 rows,
          u32 thread, u32 threads) {
  using Row = PickRow<K>;
  PickResult *picked =
      static_cast<PickResult *>(const_cast<void *>(operands[6]));
  auto rowAt = [&](u32 row) -> Row {
    u8 *states = static_cast<u8 *>(const_cast<void *>(operands[5]));
    f32 *bounds = static_cast<f32 *>(const_cast<void *>(operands[4]));
    return {args->pickArgs[row],
            static_cast<const ActivationBlock *>(operands[0]) +
                i64(row) * Row::blocks,
            static_cast<const typename Row::Head::Block *>(operands[1]),
            static_cast<const typename Row::Coarse::Block *>(operands[2]),
            static_cast<const f32 *>(operands[3]),
            bounds + i64(row) * K::n,
            *reinterpret_cast<PickState *>(states + u64(row) * pickStateBytes),
            splitEvenly(Row::groups, thread, threads)};
  };
  bool draws = false;
  for (u32 row = 0; row < rows; ++row) {
    Row at = rowAt(row);
    if (thread == 0)
      at.clear();
    at.scan();
    draws |= drawsFromAll(at.args);
  }
  barrier(args, threads);
  for (u32 row = 0; row < rows; ++row)
    rowAt(row).start();
  barrier(args, threads);
  for (u32 row = 0; row < rows; ++row)
    rowAt(row).finishList();
  barrier(args, threads);
  if (draws) {
    for (u32 row = 0; row < rows; ++row)
      if (drawsFromAll(args->pickArgs[row]))
        rowAt(row).draw();
    barrier(args, threads);
  }
  for (u32 row = thread; row < rows; row += threads)
    picked[row] = rowAt(row).result();
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_PICK_PICK_H

/// \file
/// Skeleton `contract`: activation products, masks and shapes of a graph in
/// sequence form (kernel.contract of ir/kernel/KernelOps.td), in plain loops.
/// No engine that is compiled with all phases contains it; it is what lets any
/// optional phase be left out. Shapes are K::dims, -1 for the rows T.
#ifndef LATHE_KERNELS_CPU_CONTRACT_H
#define LATHE_KERNELS_CPU_CONTRACT_H

#include "kernels/cpu/Embed.h"
#include "kernels/cpu/Math.h"
#include "kernels/cpu/RopeAppend.h"

namespace lathe::kernels {

/// What a contract kernel computes; the dims of each are listed at its
/// function.
enum class ContractOp {
  Matmul,
  MatmulTransposed,
  Softmax,
  Mask,
  Map,
  Combine,
  Transpose,
  RepeatHeads,
  Norm,
  Rope,
  Attention,
  Linear,
};

} // namespace lathe::kernels

namespace lathe::kernels::inline LATHE_ISA {

/// Sum of a[i] * b[i] in sixteen lanes and their tree.
inline f32 laneDot(const f32 *a, const f32 *b, i64 n) {
  Lanes16 sum = Lanes16::splat(0);
  for (i64 i = 0; i < n; i += 16)
    LATHE_UNROLL
  for (u32 h = 0; h < halves; ++h) {
    i64 at = i + h * width;
    if (at < n)
      sum.part[h] = fma(loadFirst(a + at, n - at), loadFirst(b + at, n - at),
                        sum.part[h]);
  }
  return treeSum(sum);
}

/// to[i] = fma(factor, from[i], to[i]).
inline void addScaled(f32 *to, f32 factor, const f32 *from, i64 n) {
  for (i64 i = 0; i < n; i += width)
    storeFirst(to + i,
               fma(Floats::splat(factor), loadFirst(from + i, n - i),
                   loadFirst(to + i, n - i)),
               n - i);
}

/// One launch: the kernel's constants with T filled in, and this thread's part.
template <typename K> struct Contraction {
  const StepArgs *args;
  const void *const *operands;
  i64 rows;
  u32 thread, threads;

  i64 dim(u32 index) const {
    return K::dims[index] < 0 ? rows : i64(K::dims[index]);
  }
  const f32 *in(u32 index) const {
    return static_cast<const f32 *>(operands[index]);
  }
  f32 *out(u32 index) const {
    return static_cast<f32 *>(const_cast<void *>(operands[index]));
  }
  /// This thread's share of `total` independent pieces.
  Range share(i64 total) const { return splitEvenly(total, thread, threads); }
  bool sees(i64 row, i64 key) const {
    i64 p = args->positions[row], q = args->positions[key];
    return q <= p && (K::window == 0 || p - q < K::window);
  }

  /// dims B, M, K, N: [B, M, K] x [B, K, N], or [B, N, K] if transposed.
  template <bool transposed> void matmul() const {
    i64 m = dim(1), k = dim(2), n = dim(3);
    Range range = share(dim(0) * m);
    for (i64 at = range.begin; at < range.end; ++at) {
      const f32 *a = in(0) + at * k, *b = in(1) + at / m * k * n;
      f32 *to = out(2) + at * n;
      if constexpr (transposed) {
        for (i64 i = 0; i < n; ++i)
          to[i] = laneDot(a, b + i * k, k);
      } else {
        __builtin_memset(to, 0, n * sizeof(f32));
        for (i64 i = 0; i < k; ++i)
          addScaled(to, a[i], b + i * n, n);
      }
    }
  }

  /// dims A, B, N: over the last dimension.
  void softmax() const {
    i64 n = dim(2);
    Range range = share(dim(0) * dim(1));
    for (i64 at = range.begin; at < range.end; ++at) {
      const f32 *x = in(0) + at * n;
      f32 *to = out(1) + at * n;
      f32 top = -__builtin_inff(), sum = 0;
      for (i64 i = 0; i < n; ++i)
        top = x[i] > top ? x[i] : top;
      for (i64 i = 0; i < n; ++i)
        sum += to[i] = expScalar(x[i] - top);
      for (i64 i = 0; i < n; ++i)
        to[i] = to[i] / sum;
    }
  }

  /// dims B, M, N: row m, key n.
  void mask() const {
    i64 m = dim(1), n = dim(2);
    Range range = share(dim(0) * m);
    for (i64 at = range.begin; at < range.end; ++at)
      for (i64 i = 0; i < n; ++i)
        out(1)[at * n + i] =
            sees(at % m, i) ? in(0)[at * n + i] : -__builtin_inff();
  }

  /// dims A, B, C: elementwise, of one operand or two.
  template <bool two> void map() const {
    i64 n = dim(2);
    Range range = share(dim(0) * dim(1));
    for (i64 i = range.begin * n; i < range.end * n; i += width) {
      i64 left = range.end * n - i;
      Floats x = loadFirst(in(0) + i, left);
      if constexpr (two)
        storeFirst(out(2) + i,
                   K::template map<Floats>(x, loadFirst(in(1) + i, left)),
                   left);
      else
        storeFirst(out(1) + i, K::template map<Floats>(x), left);
    }
  }

  /// dims A, B, D of the input: [A, B, D] -> [B, A, D].
  void transpose() const {
    i64 a = dim(0), b = dim(1), d = dim(2);
    Range range = share(a * b);
    for (i64 at = range.begin; at < range.end; ++at)
      __builtin_memcpy(out(1) + (at % b * a + at / b) * d, in(0) + at * d,
                       d * sizeof(f32));
  }

  /// dims T, H, D, times.
  void repeatHeads() const {
    i64 d = dim(2), times = dim(3);
    Range range = share(dim(0) * dim(1));
    for (i64 at = range.begin; at < range.end; ++at)
      for (i64 i = 0; i < times; ++i)
        __builtin_memcpy(out(1) + (at * times + i) * d, in(0) + at * d,
                         d * sizeof(f32));
  }

  /// dims T, H, D: each head by itself.
  void norm() const {
    constexpr i64 d = K::dims[2];
    Range range = share(dim(0) * dim(1));
    for (i64 at = range.begin; at < range.end; ++at) {
      f32 *to = out(2) + at * d;
      __builtin_memcpy(to, in(0) + at * d, d * sizeof(f32));
      normHead<d>(to, in(1), K::epsilon);
    }
  }

  /// dims T, H, D, pairs.
  void rope() const {
    constexpr i64 d = K::dims[2], pairs = K::dims[3];
    i64 heads = dim(1);
    Range range = share(dim(0) * heads);
    for (i64 at = range.begin; at < range.end; ++at) {
      RopeEntry<pairs> entry(in(1) +
                             i64(args->positions[at / heads]) * pairs * 2);
      f32 *to = out(2) + at * d;
      __builtin_memcpy(to, in(0) + at * d, d * sizeof(f32));
      rotate<pairs, K::ropeHalves>(to, entry);
    }
  }

  /// dims heads, kvHeads, D: q [T, heads, D], k and v [T, kvHeads, D]. Softmax
  /// with a running maximum.
  void attention() const {
    constexpr i64 heads = K::dims[0], kvHeads = K::dims[1], d = K::dims[2];
    Range range = share(rows * heads);
    for (i64 at = range.begin; at < range.end; ++at) {
      i64 row = at / heads, kvHead = at % heads / (heads / kvHeads);
      f32 *to = out(3) + at * d;
      __builtin_memset(to, 0, d * sizeof(f32));
      f32 top = -__builtin_inff(), sum = 0;
      for (i64 key = 0; key < rows; ++key) {
        if (!sees(row, key))
          continue;
        i64 from = (key * kvHeads + kvHead) * d;
        f32 score = laneDot(in(0) + at * d, in(1) + from, d) * K::scale;
        if constexpr (K::softcap > 0)
          score = K::softcap *
                  tanh(Floats::splat(score * (1.0f / K::softcap))).v[0];
        if (score > top) {
          f32 shrink = expScalar(top - score);
          for (i64 i = 0; i < d; ++i)
            to[i] *= shrink;
          sum *= shrink;
          top = score;
        }
        f32 weight = expScalar(score - top);
        sum += weight;
        addScaled(to, weight, in(2) + from, d);
      }
      for (i64 i = 0; i < d; ++i)
        to[i] = to[i] / sum;
    }
  }

  /// dims K, N: x [T, K] by a packed weight of any format, dequantized, with
  /// f32 activations; the bias [N] is the third operand if there is one.
  void linear() const {
    constexpr i64 k = K::dims[0], n = K::dims[1], blocks = ceilDivide(k, 32);
    Range range = share(ceilDivide(n, 16));
    for (i64 group = range.begin; group < range.end; ++group) {
      const u8 *weight = static_cast<const u8 *>(operands[1]) +
                         group * groupBytes<K::format>(k);
      i64 columns = n - group * 16 < 16 ? n - group * 16 : 16;
      for (i64 block = 0; block < blocks; ++block) {
        i64 valid = k - block * 32 < 32 ? k - block * 32 : 32;
        alignas(64) f32 tile[32][16] = {};
        for (u32 lane = 0; lane < 16; ++lane) {
          f32 values[32] = {};
          RowValues<K::format>::get(weight, block, lane, valid, values);
          for (i64 i = 0; i < valid; ++i)
            tile[i][lane] = values[i];
        }
        for (i64 row = 0; row < rows; ++row) {
          f32 *to = out(K::bias ? 3 : 2) + row * n + group * 16;
          if (block == 0)
            __builtin_memset(to, 0, columns * sizeof(f32));
          for (i64 i = 0; i < valid; ++i)
            addScaled(to, in(0)[row * k + block * 32 + i], tile[i], columns);
        }
      }
      if constexpr (K::bias)
        for (i64 row = 0; row < rows; ++row)
          for (i64 c = 0; c < columns; ++c)
            out(3)[row * n + group * 16 + c] += in(2)[group * 16 + c];
    }
  }
};

/// The part of thread `thread` of a contract kernel.
template <typename K>
void contract(const StepArgs *args, const void *const *operands, u32 rows,
              u32 thread, u32 threads) {
  Contraction<K> part{args, operands, rows, thread, threads};
  if constexpr (K::op == ContractOp::Matmul)
    part.template matmul<false>();
  else if constexpr (K::op == ContractOp::MatmulTransposed)
    part.template matmul<true>();
  else if constexpr (K::op == ContractOp::Softmax)
    part.softmax();
  else if constexpr (K::op == ContractOp::Mask)
    part.mask();
  else if constexpr (K::op == ContractOp::Map)
    part.template map<false>();
  else if constexpr (K::op == ContractOp::Combine)
    part.template map<true>();
  else if constexpr (K::op == ContractOp::Transpose)
    part.transpose();
  else if constexpr (K::op == ContractOp::RepeatHeads)
    part.repeatHeads();
  else if constexpr (K::op == ContractOp::Norm)
    part.norm();
  else if constexpr (K::op == ContractOp::Rope)
    part.rope();
  else if constexpr (K::op == ContractOp::Attention)
    part.attention();
  else
    part.linear();
}

} // namespace lathe::kernels::inline LATHE_ISA

#endif // LATHE_KERNELS_CPU_CONTRACT_H

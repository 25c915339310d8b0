// The measured kernels, compiled once per ISA layer as an engine's code is.

#include "tests/kernels/bench/BenchLayer.h"
#include "kernels/cpu/Kernels.h"

namespace lathe::bench::LATHE_ISA {

using namespace lathe::kernels;

template <Format weightFormat, i64 columns, i64 elems> struct Gemm {
  static constexpr i64 k = elems;
  static constexpr Store input =
      weightFormat == Format::F16 ? Store::F32 : Store::Q8;
  struct Seg0 {
    static constexpr i64 n = columns;
    static constexpr Format format = weightFormat;
    static constexpr bool paired = false;
    static constexpr Store store = Store::F32;
    static constexpr u32 sideCount = 0;
    template <typename V> static inline V map(V acc) { return acc; }
  };
  using Segments = TypeList<Seg0>;

  static void run(const StepArgs *args, const void *const *operands, u32 rows,
                  u32 thread, u32 threads) {
    gemm<Gemm>(args, operands, rows, thread, threads);
  }
};

template <Format format, i64 n, i64 k>
constexpr GemmBench bench(const char *name) {
  return {name, format, n, k, Gemm<format, n, k>::run};
}

constexpr GemmBench gemms[] = {
    bench<Format::Q4_1, 1536, 576>("Q4_1"),
    bench<Format::Q4_1, 576, 1536>("Q4_1"),
    bench<Format::Q4_1, 576, 4096>("Q4_1"), // Long: k in slices.
    bench<Format::Q4_0, 1536, 576>("Q4_0"),
    bench<Format::Q8_0, 1536, 576>("Q8_0"),
    bench<Format::Q5_0, 2048, 640>("Q5_0"),
    bench<Format::Q4_K, 2048, 768>("Q4_K"),
    bench<Format::Q6_K, 2048, 768>("Q6_K"),
    bench<Format::Q3_K, 2048, 768>("Q3_K"),
    bench<Format::IQ4_NL, 1536, 576>("IQ4_NL"),
    bench<Format::F16, 576, 576>("F16"),
};

template <KvType type> struct Attention {
  static constexpr u32 group = 0;
  static constexpr i64 heads = 9, kvHeads = 3, headDim = 64;
  static constexpr i64 chunk = 128, window = 0;
  static constexpr f32 softcap = 0;
  static constexpr KvType element = type;
  static constexpr Store store = Store::Q8;

  static void run(const StepArgs *args, const void *const *operands, u32 rows,
                  u32 thread, u32 threads) {
    attention<Attention>(args, operands, rows, thread, threads);
  }
};

template <KvType type> struct Rope {
  static constexpr u32 group = 0;
  static constexpr i64 heads = 9, kvHeads = 3, headDim = 64, ropePairs = 32;
  static constexpr bool ropeHalves = false, qkNorm = false;
  static constexpr f32 epsilon = 0, qScale = 0.125f;
  static constexpr i64 chunk = 128;
  static constexpr KvType element = type;

  static void run(const StepArgs *args, const void *const *operands, u32 rows,
                  u32 thread, u32 threads) {
    ropeAppend<Rope>(args, operands, rows, thread, threads);
  }
};

template <typename K> constexpr AttentionBench attend(const char *name) {
  return {name, K::element, K::heads, K::kvHeads, K::headDim, K::run};
}

constexpr AttentionBench attentions[] = {
    attend<Attention<KvType::F16>>(""),
    attend<Attention<KvType::BF16>>("_bf16"),
    attend<Attention<KvType::Int8>>("_int8"),
};

template <typename K> constexpr RopeBench rotate(const char *name) {
  return {name,       K::element,   K::heads, K::kvHeads,
          K::headDim, K::ropePairs, K::run};
}

constexpr RopeBench ropes[] = {
    rotate<Rope<KvType::F16>>(""),
    rotate<Rope<KvType::Int8>>("_int8"),
};

struct Norm {
  static constexpr i64 k = 576;
  struct Stage {
    static constexpr bool rms = true;
    static constexpr f32 epsilon = 1e-5f;
    static constexpr u32 sideCount = 1;
    static constexpr Side sides[] = {Side::Column};
    static constexpr u32 storeCount = 1;
    static constexpr Store stores[] = {Store::Q8};
    template <typename V> static inline V map(V x, V s0) { return x * s0; }
  };
  using Stages = TypeList<Stage>;

  static void run(const StepArgs *args, const void *const *operands, u32 rows,
                  u32 thread, u32 threads) {
    rowwise<Norm>(args, operands, rows, thread, threads);
  }
};

struct Embedding {
  static constexpr i64 vocab = 49152, k = 576;
  static constexpr Format format = Format::Q8_0;
  template <typename V> static inline V map(V x) { return x; }

  static void run(const StepArgs *args, const void *const *operands, u32 rows,
                  u32 thread, u32 threads) {
    embed<Embedding>(args, operands, rows, thread, threads);
  }
};

struct Pick {
  static constexpr i64 n = 49152, k = 576;

  static void run(const StepArgs *args, const void *const *operands, u32 rows,
                  u32 thread, u32 threads) {
    pick<Pick>(args, operands, rows, thread, threads);
  }
};

#define LATHE_STRING_OF(x) #x
#define LATHE_STRING(x) LATHE_STRING_OF(x)

extern const BenchLayer layer;
const BenchLayer layer = {
    LATHE_STRING(LATHE_ISA),
    gemms,
    sizeof(gemms) / sizeof(gemms[0]),
    attentions,
    sizeof(attentions) / sizeof(attentions[0]),
    ropes,
    sizeof(ropes) / sizeof(ropes[0]),
    {Norm::k, Norm::run},
    {Embedding::format, Embedding::vocab, Embedding::k, Embedding::run},
    {Pick::n, Pick::k, Pick::run}};

} // namespace lathe::bench::LATHE_ISA

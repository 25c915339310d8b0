// The rope_append and attention cases.

#include "tests/kernels/cpu/LayerParts.h"

namespace lathe::tests::LATHE_ISA {

/// Grouped queries, q8 output, adjacent pairs: SmolLM2's shape.
template <KvType type> struct Grouped {
  static constexpr u32 group = 0;
  static constexpr i64 heads = 9, kvHeads = 3, headDim = 64, ropePairs = 32;
  static constexpr bool ropeHalves = false, qkNorm = false;
  static constexpr f32 epsilon = 0, qScale = 0.125f, softcap = 0;
  static constexpr i64 chunk = 128, window = 0;
  static constexpr KvType element = type;
  static constexpr Store store = Store::Q8;
};

/// Window, soft cap, QK-norm, halves, partial rotation.
template <KvType type> struct Windowed {
  static constexpr u32 group = 0;
  static constexpr i64 heads = 4, kvHeads = 1, headDim = 80, ropePairs = 24;
  static constexpr bool ropeHalves = true, qkNorm = true;
  static constexpr f32 epsilon = 1e-6f, qScale = 0.25f, softcap = 5;
  static constexpr i64 chunk = 128, window = 150;
  static constexpr KvType element = type;
  static constexpr Store store = Store::F32;
};

/// One query head per KV head, a window shorter than a page.
template <KvType type> struct Narrow {
  static constexpr u32 group = 0;
  static constexpr i64 heads = 2, kvHeads = 2, headDim = 32, ropePairs = 16;
  static constexpr bool ropeHalves = true, qkNorm = false;
  static constexpr f32 epsilon = 0, qScale = 1, softcap = 0;
  static constexpr i64 chunk = 128, window = 5;
  static constexpr KvType element = type;
  static constexpr Store store = Store::Q8;
};

/// Many query heads on one, a ragged head, no rotation.
template <KvType type> struct Single {
  static constexpr u32 group = 0;
  static constexpr i64 heads = 11, kvHeads = 1, headDim = 20, ropePairs = 0;
  static constexpr bool ropeHalves = true, qkNorm = true;
  static constexpr f32 epsilon = 1e-5f, qScale = 0.5f, softcap = 0;
  static constexpr i64 chunk = 128, window = 0;
  static constexpr KvType element = type;
  static constexpr Store store = Store::F32;
};

template <typename K> struct Entries {
  static LATHE_ENTRY(rope, ropeAppend, K);
  static LATHE_ENTRY(ownedRope, ropeAppendOwned, K);
  static LATHE_ENTRY(attend, attention, K);
};

template <typename K> constexpr AttentionCase describe(const char *name) {
  return {name,
          K::heads,
          K::kvHeads,
          K::headDim,
          K::ropePairs,
          K::window,
          K::ropeHalves,
          K::qkNorm,
          K::element,
          K::epsilon,
          K::qScale,
          K::softcap,
          K::store,
          Entries<K>::rope,
          Entries<K>::ownedRope,
          Entries<K>::attend};
}

constexpr AttentionCase cases[] = {
    describe<Grouped<KvType::F16>>("grouped"),
    describe<Grouped<KvType::Int8>>("grouped int8"),
    describe<Windowed<KvType::F32>>("windowed"),
    describe<Windowed<KvType::BF16>>("windowed bf16"),
    describe<Windowed<KvType::Int8>>("windowed int8"),
    describe<Narrow<KvType::F16>>("narrow"),
    describe<Narrow<KvType::Int8>>("narrow int8"),
    describe<Single<KvType::F16>>("single"),
    describe<Single<KvType::BF16>>("single bf16"),
    describe<Single<KvType::Int8>>("single int8"),
};

const CaseList<AttentionCase> attentionCases = {cases, sizeof(cases) /
                                                           sizeof(cases[0])};

} // namespace lathe::tests::LATHE_ISA

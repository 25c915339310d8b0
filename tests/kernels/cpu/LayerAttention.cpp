// The rope_append and attention cases.

#include "tests/kernels/cpu/LayerParts.h"

namespace lathe::tests::LATHE_ISA {

/// Grouped queries, f16 cache, q8 output, adjacent pairs: SmolLM2's shape.
struct Grouped {
  static constexpr u32 group = 0;
  static constexpr i64 heads = 9, kvHeads = 3, headDim = 64, ropePairs = 32;
  static constexpr bool ropeHalves = false, qkNorm = false;
  static constexpr f32 epsilon = 0, qScale = 0.125f, softcap = 0;
  static constexpr i64 chunk = 128, window = 0;
  using Element = F16;
  static constexpr Store store = Store::Q8;
};

/// Window, soft cap, QK-norm, halves, partial rotation, f32 cache.
struct Windowed {
  static constexpr u32 group = 0;
  static constexpr i64 heads = 4, kvHeads = 1, headDim = 80, ropePairs = 24;
  static constexpr bool ropeHalves = true, qkNorm = true;
  static constexpr f32 epsilon = 1e-6f, qScale = 0.25f, softcap = 5;
  static constexpr i64 chunk = 128, window = 150;
  using Element = F32;
  static constexpr Store store = Store::F32;
};

/// One query head per KV head, a window shorter than a page.
struct Narrow {
  static constexpr u32 group = 0;
  static constexpr i64 heads = 2, kvHeads = 2, headDim = 32, ropePairs = 16;
  static constexpr bool ropeHalves = true, qkNorm = false;
  static constexpr f32 epsilon = 0, qScale = 1, softcap = 0;
  static constexpr i64 chunk = 128, window = 5;
  using Element = F16;
  static constexpr Store store = Store::Q8;
};

/// Many query heads on one, a ragged head, no rotation.
struct Single {
  static constexpr u32 group = 0;
  static constexpr i64 heads = 11, kvHeads = 1, headDim = 20, ropePairs = 0;
  static constexpr bool ropeHalves = true, qkNorm = true;
  static constexpr f32 epsilon = 1e-5f, qScale = 0.5f, softcap = 0;
  static constexpr i64 chunk = 128, window = 0;
  using Element = F16;
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
          sizeof(typename CacheElement<typename K::Element>::Type) == 2,
          K::epsilon,
          K::qScale,
          K::softcap,
          K::store,
          Entries<K>::rope,
          Entries<K>::ownedRope,
          Entries<K>::attend};
}

constexpr AttentionCase cases[] = {
    describe<Grouped>("grouped"),
    describe<Windowed>("windowed"),
    describe<Narrow>("narrow"),
    describe<Single>("single"),
};

const CaseList<AttentionCase> attentionCases = {cases, sizeof(cases) /
                                                           sizeof(cases[0])};

} // namespace lathe::tests::LATHE_ISA

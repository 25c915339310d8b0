// The gemm cases: every format, with ragged ends, several segments, every kind
// of side, both stores, and a paired segment.

#include "tests/kernels/cpu/LayerParts.h"

namespace lathe::tests::LATHE_ISA {

/// f32, an element side; ends in half a unit, a whole group.
template <Format weightFormat> struct Plain {
  static constexpr i64 n = 336;
  static constexpr Format format = weightFormat;
  static constexpr bool paired = false;
  static constexpr Store store = Store::F32;
  static constexpr u32 sideCount = 1;
  static constexpr Side sides[1] = {Side::Element};
  static constexpr Region region = Region::Residual;
  template <typename V> static inline V map(V acc, V s0) { return acc + s0; }
};

/// A ragged end inside a group, all kinds of sides, q8.
template <Format weightFormat> struct Ragged {
  static constexpr i64 n = 72;
  static constexpr Format format = weightFormat;
  static constexpr bool paired = false;
  static constexpr Store store = Store::Q8;
  static constexpr u32 sideCount = 3;
  static constexpr Side sides[3] = {Side::Row, Side::Column, Side::Element};
  static constexpr Region region = Region::AllSides;
  template <typename V> static inline V map(V acc, V s0, V s1, V s2) {
    return fma(acc, s0, s1) - s2;
  }
};

/// Gate and up in one segment.
template <Format weightFormat> struct Paired {
  static constexpr i64 n = 176;
  static constexpr Format format = weightFormat;
  static constexpr bool paired = true;
  static constexpr Store store = Store::Q8;
  static constexpr u32 sideCount = 0;
  static constexpr Region region = Region::SwiGlu;
  template <typename V> static inline V map(V gate, V up) {
    return gate / (V::splat(1.0f) + exp(-gate)) * up;
  }
};

/// f32, no side; four units (one run of streams), the last without its second
/// group.
template <Format weightFormat> struct Bare {
  static constexpr i64 n = 100;
  static constexpr Format format = weightFormat;
  static constexpr bool paired = false;
  static constexpr Store store = Store::F32;
  static constexpr u32 sideCount = 0;
  static constexpr Region region = Region::Identity;
  template <typename V> static inline V map(V acc) { return acc; }
};

/// More units than wait together between two slices of k.
template <Format weightFormat> struct Wide : Bare<weightFormat> {
  static constexpr i64 n = 620;
};

template <i64 elems, Store stored, typename... Segs> struct Gemm {
  static constexpr i64 k = elems;
  static constexpr Store input = stored;
  using Segments = TypeList<Segs...>;
  static LATHE_ENTRY(run, gemm, Gemm);
};

template <typename Seg> constexpr SegmentCase describeSegment() {
  SegmentCase info = {Seg::n,         Seg::format, Seg::paired, Seg::store,
                      Seg::sideCount, {},          Seg::region};
  if constexpr (Seg::sideCount > 0)
    for (u32 i = 0; i < Seg::sideCount; ++i)
      info.sides[i] = Seg::sides[i];
  return info;
}

template <i64 elems, Store stored, typename... Segs>
constexpr GemmCase describe(const char *name, Gemm<elems, stored, Segs...>) {
  return {name,
          elems,
          stored,
          sizeof...(Segs),
          {describeSegment<Segs>()...},
          Gemm<elems, stored, Segs...>::run};
}

template <Format f>
using Blocks32 = Gemm<288, Store::Q8, Plain<f>, Ragged<f>, Paired<f>>;
template <Format f>
using Blocks256 = Gemm<512, Store::Q8, Plain<f>, Ragged<f>, Paired<f>>;
template <Format f>
using Floats32 = Gemm<101, Store::F32, Plain<f>, Ragged<f>, Paired<f>>;
/// Formats side by side, as Gemma's q, k and v.
using Mixed = Gemm<256, Store::Q8, Bare<Format::Q5_0>, Bare<Format::Q8_0>,
                   Bare<Format::Q6_K>>;
/// Deep enough that many rows take k in slices, the last a short one.
using Deep = Gemm<2560, Store::Q8, Wide<Format::Q4_1>, Paired<Format::Q6_K>>;
using DeepFloats = Gemm<1101, Store::F32, Bare<Format::F32>, Bare<Format::F16>,
                        Bare<Format::BF16>>;

constexpr GemmCase cases[] = {
    describe("Q4_0", Blocks32<Format::Q4_0>{}),
    describe("Q4_1", Blocks32<Format::Q4_1>{}),
    describe("Q5_0", Blocks32<Format::Q5_0>{}),
    describe("Q5_1", Blocks32<Format::Q5_1>{}),
    describe("Q8_0", Blocks32<Format::Q8_0>{}),
    describe("IQ4_NL", Blocks32<Format::IQ4_NL>{}),
    describe("Q2_K", Blocks256<Format::Q2_K>{}),
    describe("Q3_K", Blocks256<Format::Q3_K>{}),
    describe("Q4_K", Blocks256<Format::Q4_K>{}),
    describe("Q5_K", Blocks256<Format::Q5_K>{}),
    describe("Q6_K", Blocks256<Format::Q6_K>{}),
    describe("IQ4_XS", Blocks256<Format::IQ4_XS>{}),
    describe("F32", Floats32<Format::F32>{}),
    describe("F16", Floats32<Format::F16>{}),
    describe("BF16", Floats32<Format::BF16>{}),
    describe("Mixed", Mixed{}),
    describe("Deep", Deep{}),
    describe("DeepFloats", DeepFloats{}),
};

const CaseList<GemmCase> gemmCases = {cases, sizeof(cases) / sizeof(cases[0])};

} // namespace lathe::tests::LATHE_ISA

// The rowwise and embed cases, and the step's surroundings.

#include "tests/kernels/cpu/LayerParts.h"

namespace lathe::tests::LATHE_ISA {

struct NormStage {
  static constexpr bool rms = true;
  static constexpr f32 epsilon = 1e-5f;
  static constexpr u32 sideCount = 1;
  static constexpr Side sides[] = {Side::Column};
  static constexpr u32 storeCount = 2;
  static constexpr Store stores[] = {Store::Q8, Store::F32};
  static constexpr Region region = Region::Weight;
  template <typename V> static inline V map(V x, V s0) { return x * s0; }
};

struct ResidualStage {
  static constexpr bool rms = true;
  static constexpr f32 epsilon = 1e-6f;
  static constexpr u32 sideCount = 1;
  static constexpr Side sides[1] = {Side::Element};
  static constexpr u32 storeCount = 1;
  static constexpr Store stores[1] = {Store::F32};
  static constexpr Region region = Region::Residual;
  template <typename V> static inline V map(V x, V s0) { return x + s0; }
};

struct ClampStage {
  static constexpr bool rms = false;
  static constexpr f32 epsilon = 0;
  static constexpr u32 sideCount = 1;
  static constexpr Side sides[] = {Side::Column};
  static constexpr u32 storeCount = 1;
  static constexpr Store stores[1] = {Store::F32};
  static constexpr Region region = Region::Clamp;
  template <typename V> static inline V map(V x, V s0) {
    return max(min(x, s0), -s0);
  }
};

/// Stages without sides; `name` of codegen's region is a type here.
template <Region which, typename Map, bool stored> struct Elementwise {
  static constexpr bool rms = false;
  static constexpr f32 epsilon = 0;
  static constexpr u32 sideCount = 0;
  static constexpr u32 storeCount = stored ? 1 : 0;
  static constexpr Store stores[1] = {Store::F32};
  static constexpr Region region = which;
  template <typename V> static inline V map(V x) { return Map::apply(x); }
};

struct GeluMap {
  template <typename V> static inline V apply(V x) {
    V cubed = x * x * x;
    V inner = V::splat(0.7978845608f) * (x + V::splat(0.044715f) * cubed);
    return V::splat(0.5f) * x * (V::splat(1.0f) + tanh(inner));
  }
};
struct ExpMap {
  template <typename V> static inline V apply(V x) { return exp(x); }
};
struct TanhMap {
  template <typename V> static inline V apply(V x) { return tanh(x); }
};
struct MiscMap {
  template <typename V> static inline V apply(V x) {
    return -abs(x) / sqrt(x * x + V::splat(0.5f)) + V::splat(-0.0f);
  }
};

template <i64 elems, typename... Types> struct Rows {
  static constexpr i64 k = elems;
  using Stages = TypeList<Types...>;
  static LATHE_ENTRY(run, rowwise, Rows);
};

template <typename Stage> constexpr StageCase describeStage() {
  StageCase info = {Stage::rms,   Stage::epsilon,    Stage::sideCount,
                    {},           Stage::storeCount, {},
                    Stage::region};
  if constexpr (Stage::sideCount > 0)
    for (u32 i = 0; i < Stage::sideCount; ++i)
      info.sides[i] = Stage::sides[i];
  for (u32 i = 0; i < Stage::storeCount; ++i)
    info.stores[i] = Stage::stores[i];
  return info;
}

template <i64 elems, typename... Types>
constexpr RowwiseCase describe(const char *name, Rows<elems, Types...>) {
  return {name,
          elems,
          sizeof...(Types),
          {describeStage<Types>()...},
          Rows<elems, Types...>::run};
}

using Gelu = Elementwise<Region::Gelu, GeluMap, true>;
using GeluPassed = Elementwise<Region::Gelu, GeluMap, false>;

constexpr RowwiseCase rowwiseTable[] = {
    describe("norm", Rows<576, NormStage>{}),
    describe("ragged norm", Rows<83, NormStage>{}),
    describe("short norm", Rows<5, NormStage>{}),
    describe("three stages", Rows<200, ResidualStage, GeluPassed, NormStage>{}),
    describe("clamp", Rows<96, ClampStage>{}),
    describe("gelu", Rows<96, Gelu>{}),
    describe("exp", Rows<4096, Elementwise<Region::Exp, ExpMap, true>>{}),
    describe("tanh", Rows<4096, Elementwise<Region::Tanh, TanhMap, true>>{}),
    describe("misc", Rows<4096, Elementwise<Region::Misc, MiscMap, true>>{}),
};

const CaseList<RowwiseCase> rowwiseCases = {
    rowwiseTable, sizeof(rowwiseTable) / sizeof(rowwiseTable[0])};

template <Format weightFormat, i64 elems> struct Embed {
  static constexpr i64 vocab = 70, k = elems;
  static constexpr Format format = weightFormat;
  template <typename V> static inline V map(V x) {
    return x * V::splat(25.298221f);
  }
  static LATHE_ENTRY(run, embed, Embed);
};

template <Format format, i64 k>
constexpr EmbedCase describe(const char *name, Embed<format, k>) {
  return {name, Embed<format, k>::vocab, k, format, Embed<format, k>::run};
}

constexpr EmbedCase embedTable[] = {
    describe("Q4_0", Embed<Format::Q4_0, 96>{}),
    describe("Q4_1", Embed<Format::Q4_1, 96>{}),
    describe("Q5_0", Embed<Format::Q5_0, 96>{}),
    describe("Q5_1", Embed<Format::Q5_1, 96>{}),
    describe("Q8_0", Embed<Format::Q8_0, 96>{}),
    describe("IQ4_NL", Embed<Format::IQ4_NL, 96>{}),
    describe("Q2_K", Embed<Format::Q2_K, 512>{}),
    describe("Q3_K", Embed<Format::Q3_K, 512>{}),
    describe("Q4_K", Embed<Format::Q4_K, 512>{}),
    describe("Q5_K", Embed<Format::Q5_K, 512>{}),
    describe("Q6_K", Embed<Format::Q6_K, 512>{}),
    describe("IQ4_XS", Embed<Format::IQ4_XS, 512>{}),
    describe("F32", Embed<Format::F32, 77>{}),
    describe("F16", Embed<Format::F16, 77>{}),
    describe("BF16", Embed<Format::BF16, 77>{}),
};

const CaseList<EmbedCase> embedCases = {embedTable, sizeof(embedTable) /
                                                        sizeof(embedTable[0])};

void stepScope(u32 *inside, u32 *after) {
  {
    StepScope scope;
    *inside = __builtin_ia32_stmxcsr();
  }
  *after = __builtin_ia32_stmxcsr();
}

#define LATHE_STRING_OF(x) #x
#define LATHE_STRING(x) LATHE_STRING_OF(x)

extern const Layer layer;
const Layer layer = {
    LATHE_STRING(LATHE_ISA), brainDots, gemmCases, rowwiseCases, embedCases,
    attentionCases,          pickCases, barrier,   stepScope};

} // namespace lathe::tests::LATHE_ISA

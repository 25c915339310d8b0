#include "runtime/device/CpuFeatures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace lathe;
using namespace lathe::runtime;

namespace {

constexpr u32 bit(u32 n) { return 1u << n; }

/// A CPU with everything up to AVX-512 VNNI and BF16, state enabled.
CpuRegisters zen4() {
  CpuRegisters r;
  r.brand = "AMD EPYC znver4";
  r.leaf1.ecx = bit(0) | bit(9) | bit(12) | bit(19) | bit(20) | bit(23) |
                bit(27) | bit(28) | bit(29);
  r.leaf7.ebx =
      bit(3) | bit(5) | bit(8) | bit(16) | bit(17) | bit(30) | bit(31);
  r.leaf7.ecx = bit(1) | bit(11);
  r.leaf7Sub1.eax = bit(5);
  r.xcr0 = 0xe7;
  return r;
}

TEST(CpuFeatures, FullCpuHasTheBestLayer) {
  CpuFeatures f = CpuFeatures::fromRegisters(zen4());
  for (const char *name : {"avx2", "fma", "f16c", "avx512f", "avx512bw",
                           "avx512vl", "avx512dq", "avx512vnni", "avx512bf16"})
    EXPECT_TRUE(f.has(name)) << name;
  EXPECT_FALSE(f.has("avxvnni")); // its own bit, not AVX512_VNNI's
  EXPECT_FALSE(f.has("no-such-feature"));
  EXPECT_EQ(f.bestIsa(), "avx512bf16");
  EXPECT_EQ(f.bestIsaFor(true), "avx512bf16");
  EXPECT_EQ(f.bestIsaFor(false), "avx512");
  EXPECT_EQ(f.summary(), "AMD EPYC znver4 (avx512bf16: avx2 fma f16c avx512f "
                         "avx512bw avx512dq avx512vl avx512vnni avx512bf16)");
}

// B47: a model name promises what the hypervisor hides.
TEST(CpuFeatures, NameDoesNotBringFeatures) {
  CpuRegisters r = zen4();
  r.leaf7.ebx &= ~(bit(16) | bit(17) | bit(30) | bit(31));
  r.leaf7.ecx = 0;
  r.leaf7Sub1.eax = 0;
  CpuFeatures f = CpuFeatures::fromRegisters(r);
  for (const std::string &name : f.names())
    EXPECT_EQ(name.find("avx512"), std::string::npos) << name;
  EXPECT_EQ(f.bestIsa(), "avx2");
}

// Late bits without the foundation bit: VNNI is of no use without AVX512F.
TEST(CpuFeatures, DependentBitsNeedTheFoundation) {
  CpuRegisters r = zen4();
  r.leaf7.ebx &= ~bit(16);
  EXPECT_FALSE(CpuFeatures::fromRegisters(r).has("avx512vnni"));
  r = zen4();
  r.leaf1.ecx &= ~bit(28);
  CpuFeatures f = CpuFeatures::fromRegisters(r);
  EXPECT_FALSE(f.has("avx2"));
  EXPECT_FALSE(f.has("fma"));
  EXPECT_FALSE(f.has("avx512f"));
}

TEST(CpuFeatures, OperatingSystemMustSaveTheState) {
  CpuRegisters r = zen4();
  r.xcr0 = 0x07; // no opmask and ZMM state
  CpuFeatures f = CpuFeatures::fromRegisters(r);
  EXPECT_FALSE(f.has("avx512f"));
  EXPECT_FALSE(f.has("avx512bf16"));
  EXPECT_EQ(f.bestIsa(), "avx2");

  r.xcr0 = 0x03; // no YMM state
  f = CpuFeatures::fromRegisters(r);
  EXPECT_FALSE(f.has("avx2"));
  EXPECT_FALSE(f.has("fma"));
  EXPECT_TRUE(f.has("sse4.2"));
  EXPECT_EQ(f.bestIsa(), "generic");

  r = zen4();
  r.leaf7.edx = bit(24) | bit(25); // tiles have state of their own
  EXPECT_FALSE(CpuFeatures::fromRegisters(r).has("amx-int8"));
  r.xcr0 |= 3u << 17;
  EXPECT_TRUE(CpuFeatures::fromRegisters(r).has("amx-int8"));

  r = zen4();
  r.leaf1.ecx &= ~bit(27); // OSXSAVE off: XCR0 says nothing
  EXPECT_EQ(CpuFeatures::fromRegisters(r).bestIsa(), "generic");
}

TEST(CpuFeatures, LayerNeedsAllItsFeatures) {
  CpuRegisters r = zen4();
  r.leaf7.ecx &= ~bit(11);
  CpuFeatures f = CpuFeatures::fromRegisters(r);
  EXPECT_TRUE(f.has("avx512f"));
  EXPECT_EQ(f.bestIsa(), "avx2");
  EXPECT_EQ(f.firstMissing(isaLayers().back().features), "avx512vnni");
  EXPECT_FALSE(f.supportsIsa("neon"));
}

TEST(CpuFeatures, WithoutBf16TheLayerBelow) {
  CpuRegisters r = zen4();
  r.leaf7Sub1.eax = 0;
  CpuFeatures f = CpuFeatures::fromRegisters(r);
  EXPECT_EQ(f.bestIsa(), "avx512");
  EXPECT_EQ(f.bestIsaFor(true), "avx512");
}

TEST(CpuFeatures, EmptyCpuIsGeneric) {
  CpuFeatures f = CpuFeatures::fromRegisters({});
  EXPECT_EQ(f.bestIsaFor(true), "generic");
  EXPECT_TRUE(f.names().empty());
  EXPECT_EQ(f.bestIsa(), "generic");
  EXPECT_EQ(f.summary(), "x86-64 (generic)");
}

// The compiler's own run-time check reads the same registers.
TEST(CpuFeatures, AgreesWithTheCompilersCheckHere) {
  CpuFeatures f = CpuFeatures::detect();
  EXPECT_EQ(f.has("avx2"), bool(__builtin_cpu_supports("avx2")));
  EXPECT_EQ(f.has("fma"), bool(__builtin_cpu_supports("fma")));
  EXPECT_EQ(f.has("avx512f"), bool(__builtin_cpu_supports("avx512f")));
  EXPECT_EQ(f.has("avx512vnni"), bool(__builtin_cpu_supports("avx512vnni")));
  EXPECT_EQ(f.has("avx512bf16"), bool(__builtin_cpu_supports("avx512bf16")));
}

} // namespace

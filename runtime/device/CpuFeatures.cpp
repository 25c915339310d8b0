#include "runtime/device/CpuFeatures.h"

#include <algorithm>
#include <array>
#include <cpuid.h>
#include <cstring>

namespace lathe::runtime {
namespace {

/// Bits of XCR0 (Intel SDM vol. 1, 13.3) that a feature's registers need.
constexpr u64 stateSse = 1u << 1;
constexpr u64 stateAvx = stateSse | 1u << 2;
constexpr u64 stateAvx512 = stateAvx | 7u << 5;
constexpr u64 stateAmx = 3u << 17;

/// One feature: its bit and what the operating system must save for it.
struct FeatureBit {
  const char *name;
  CpuidLeaf CpuRegisters::*leaf;
  u32 CpuidLeaf::*reg;
  u32 bit;
  u64 state;
};

constexpr auto leaf1 = &CpuRegisters::leaf1;
constexpr auto leaf7 = &CpuRegisters::leaf7;
constexpr auto leaf7Sub1 = &CpuRegisters::leaf7Sub1;
constexpr auto leafExt = &CpuRegisters::leafExtended;
constexpr auto eax = &CpuidLeaf::eax;
constexpr auto ebx = &CpuidLeaf::ebx;
constexpr auto ecx = &CpuidLeaf::ecx;
constexpr auto edx = &CpuidLeaf::edx;

/// Intel SDM vol. 2A, CPUID; AMD APM vol. 3, appendix E. SSE state is part of
/// the x86-64 baseline and needs no check.
constexpr FeatureBit featureBits[] = {
    {"sse3", leaf1, ecx, 0, 0},
    {"ssse3", leaf1, ecx, 9, 0},
    {"sse4.1", leaf1, ecx, 19, 0},
    {"sse4.2", leaf1, ecx, 20, 0},
    {"popcnt", leaf1, ecx, 23, 0},
    {"cx16", leaf1, ecx, 13, 0},
    {"movbe", leaf1, ecx, 22, 0},
    {"lzcnt", leafExt, ecx, 5, 0},
    {"bmi", leaf7, ebx, 3, 0},
    {"bmi2", leaf7, ebx, 8, 0},
    {"avx", leaf1, ecx, 28, stateAvx},
    {"f16c", leaf1, ecx, 29, stateAvx},
    {"fma", leaf1, ecx, 12, stateAvx},
    {"avx2", leaf7, ebx, 5, stateAvx},
    {"avxvnni", leaf7Sub1, eax, 4, stateAvx},
    {"avxifma", leaf7Sub1, eax, 23, stateAvx},
    {"avxvnniint8", leaf7Sub1, edx, 4, stateAvx},
    {"gfni", leaf7, ecx, 8, 0},
    {"avx512f", leaf7, ebx, 16, stateAvx512},
    {"avx512dq", leaf7, ebx, 17, stateAvx512},
    {"avx512ifma", leaf7, ebx, 21, stateAvx512},
    {"avx512cd", leaf7, ebx, 28, stateAvx512},
    {"avx512bw", leaf7, ebx, 30, stateAvx512},
    {"avx512vl", leaf7, ebx, 31, stateAvx512},
    {"avx512vbmi", leaf7, ecx, 1, stateAvx512},
    {"avx512vbmi2", leaf7, ecx, 6, stateAvx512},
    {"avx512vnni", leaf7, ecx, 11, stateAvx512},
    {"avx512bitalg", leaf7, ecx, 12, stateAvx512},
    {"avx512vpopcntdq", leaf7, ecx, 14, stateAvx512},
    {"avx512bf16", leaf7Sub1, eax, 5, stateAvx512},
    {"avx512fp16", leaf7, edx, 23, stateAvx512},
    {"amx-bf16", leaf7, edx, 22, stateAmx},
    {"amx-tile", leaf7, edx, 24, stateAmx},
    {"amx-int8", leaf7, edx, 25, stateAmx},
};

/// CPUID 1, ecx: XGETBV may be executed.
constexpr u32 osxsaveBit = 27;

CpuidLeaf readLeaf(u32 leaf, u32 subLeaf) {
  CpuidLeaf out;
  if (!__get_cpuid_count(leaf, subLeaf, &out.eax, &out.ebx, &out.ecx, &out.edx))
    return {};
  return out;
}

u64 readXcr0() {
  u32 low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return u64(high) << 32 | low;
}

std::string readBrand() {
  if (readLeaf(0x80000000u, 0).eax < 0x80000004u)
    return {};
  std::array<char, 49> text{};
  for (u32 i = 0; i < 3; ++i) {
    CpuidLeaf part = readLeaf(0x80000002u + i, 0);
    std::memcpy(&text[16 * i], &part, 16);
  }
  std::string brand(text.data());
  size_t first = brand.find_first_not_of(' ');
  if (first == std::string::npos)
    return {};
  return brand.substr(first, brand.find_last_not_of(' ') - first + 1);
}

} // namespace

CpuFeatures CpuFeatures::detect() {
  CpuRegisters registers;
  u32 maxLeaf = readLeaf(0, 0).eax;
  registers.leaf1 = readLeaf(1, 0);
  if (maxLeaf >= 7) {
    registers.leaf7 = readLeaf(7, 0);
    if (registers.leaf7.eax >= 1)
      registers.leaf7Sub1 = readLeaf(7, 1);
  }
  registers.leafExtended = readLeaf(0x80000001u, 0);
  if (registers.leaf1.ecx >> osxsaveBit & 1)
    registers.xcr0 = readXcr0();
  registers.brand = readBrand();
  return fromRegisters(registers);
}

CpuFeatures CpuFeatures::fromRegisters(const CpuRegisters &registers) {
  CpuFeatures features;
  features.brandName = registers.brand;
  bool osxsave = registers.leaf1.ecx >> osxsaveBit & 1;
  u64 state = osxsave ? registers.xcr0 : 0;
  // A hypervisor may pass on a late bit while it hides an early one: features
  // of a vector length count only if the length itself is there.
  bool avx = (state & stateAvx) == stateAvx && (registers.leaf1.ecx >> 28 & 1);
  bool avx512 = avx && (state & stateAvx512) == stateAvx512 &&
                (registers.leaf7.ebx >> 16 & 1);
  for (const FeatureBit &feature : featureBits) {
    if (!((registers.*feature.leaf).*feature.reg >> feature.bit & 1))
      continue;
    if ((state & feature.state) != feature.state)
      continue;
    if ((feature.state == stateAvx && !avx) ||
        (feature.state == stateAvx512 && !avx512))
      continue;
    features.present.emplace_back(feature.name);
  }
  return features;
}

bool CpuFeatures::has(std::string_view feature) const {
  return std::find(present.begin(), present.end(), feature) != present.end();
}

std::string_view
CpuFeatures::firstMissing(std::span<const std::string> features) const {
  for (const std::string &feature : features)
    if (!has(feature))
      return feature;
  return {};
}

const std::vector<IsaLayer> &isaLayers() {
  static const std::vector<IsaLayer> layers = {
      {"generic", {}},
      {"avx2", {"avx2", "fma", "f16c"}},
      {"avx512",
       {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl",
        "avx512vnni"}},
      {"avx512bf16",
       {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl",
        "avx512vnni", "avx512bf16"}},
  };
  return layers;
}

bool CpuFeatures::supportsIsa(std::string_view isa) const {
  for (const IsaLayer &layer : isaLayers())
    if (layer.name == isa)
      return firstMissing(layer.features).empty();
  return false;
}

std::string_view CpuFeatures::bestIsa() const {
  std::string_view best = "generic";
  for (const IsaLayer &layer : isaLayers())
    if (supportsIsa(layer.name))
      best = layer.name;
  return best;
}

std::string_view CpuFeatures::bestIsaFor(bool bf16Weights) const {
  std::string_view best = bestIsa();
  return best == "avx512bf16" && !bf16Weights ? "avx512" : best;
}

std::string CpuFeatures::summary() const {
  std::string text = brandName.empty() ? "x86-64" : brandName;
  text += " (";
  text += bestIsa();
  const char *separator = ": ";
  for (std::string_view feature :
       {"avx2", "fma", "f16c", "avxvnni", "avx512f", "avx512bw", "avx512dq",
        "avx512vl", "avx512vnni", "avx512bf16", "amx-int8"}) {
    if (!has(feature))
      continue;
    text += separator;
    text += feature;
    separator = " ";
  }
  return text + ")";
}

} // namespace lathe::runtime

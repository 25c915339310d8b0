/// \file
/// What instructions this CPU offers and the operating system saves, from CPUID
/// and XGETBV only: a model name promises what a hypervisor may hide.
#ifndef LATHE_RUNTIME_DEVICE_CPUFEATURES_H
#define LATHE_RUNTIME_DEVICE_CPUFEATURES_H

#include "kernels/abi/Types.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::runtime {

/// The four registers of one CPUID leaf; zero if the CPU lacks the leaf.
struct CpuidLeaf {
  u32 eax = 0;
  u32 ebx = 0;
  u32 ecx = 0;
  u32 edx = 0;
};

/// Everything that CpuFeatures is derived from.
struct CpuRegisters {
  CpuidLeaf leaf1;        ///< CPUID 1.
  CpuidLeaf leaf7;        ///< CPUID 7, sub-leaf 0.
  CpuidLeaf leaf7Sub1;    ///< CPUID 7, sub-leaf 1.
  CpuidLeaf leafExtended; ///< CPUID 0x80000001.
  u64 xcr0 = 0;           ///< XGETBV 0; 0 if the OS does not offer it.
  std::string brand;      ///< Shown to people, never used to decide anything.
};

/// A set of CPU features. Immutable; any thread.
class CpuFeatures {
public:
  /// An empty set: what a CPU without any extension beyond x86-64 offers.
  CpuFeatures() = default;

  /// The features of the CPU that this thread runs on.
  static CpuFeatures detect();

  /// The features that given register values promise. A feature whose register
  /// state XCR0 does not enable is left out.
  static CpuFeatures fromRegisters(const CpuRegisters &registers);

  /// True if the feature, as Clang spells it ("avx512vnni", "sse4.2"), is
  /// there. False for names that this list does not know.
  bool has(std::string_view feature) const;

  /// The first of `features` that is missing; empty if all are there.
  std::string_view firstMissing(std::span<const std::string> features) const;

  /// All features in Clang's spelling, in a fixed order.
  const std::vector<std::string> &names() const { return present; }

  /// The best layer that isaLayers() lists and this CPU can run, e.g. "avx2".
  std::string_view bestIsa() const;

  /// The same for a model with or without BF16 matrices: without, avx512bf16
  /// has nothing that avx512 lacks, which more CPUs run.
  std::string_view bestIsaFor(bool bf16Weights) const;

  /// True if the features of ISA layer `isa` are all there; false for unknown
  /// layers.
  bool supportsIsa(std::string_view isa) const;

  /// The CPU's own name for itself, trimmed; may be empty.
  const std::string &brand() const { return brandName; }

  /// One line for logs: "AMD EPYC (avx512: avx2 fma f16c avx512f …)", with the
  /// features that kernels choose by.
  std::string summary() const;

private:
  std::vector<std::string> present;
  std::string brandName;
};

/// An ISA layer of the CPU target, worst first in isaLayers().
struct IsaLayer {
  std::string_view name;
  /// Features that code of this layer may use, Clang's spelling.
  std::vector<std::string> features;
};

/// The ISA layers of the CPU target: generic (x86-64 baseline), avx2, avx512,
/// and avx512bf16, which multiplies BF16 weights with activations rounded to
/// bf16.
const std::vector<IsaLayer> &isaLayers();

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_DEVICE_CPUFEATURES_H

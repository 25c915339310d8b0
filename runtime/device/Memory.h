/// \file
/// Large memory: how much may be taken, and taking it.
#ifndef LATHE_RUNTIME_DEVICE_MEMORY_H
#define LATHE_RUNTIME_DEVICE_MEMORY_H

#include "kernels/abi/Types.h"
#include "runtime/support/Result.h"

#include <string>
#include <string_view>

namespace lathe::runtime {

/// Bytes this process may still take before something stops it.
struct MemoryBudget {
  u64 available = ~u64(0);
  /// What sets the limit, for people: "free memory", "cgroup memory limit",
  /// "ulimit -v".
  std::string_view limitedBy = "free memory";
  /// Whether it is address space, of which mapped files have taken theirs; in
  /// memory their pages count as free.
  bool ofAddressSpace = false;

  /// The least of free memory, cgroup limits (v1 and v2, parents included;
  /// the file cache counts as free) and RLIMIT_AS.
  static MemoryBudget detect();

  /// The same with the files taken below `root` (a fake one in tests) and the
  /// bytes of address space left given (~0: no limit).
  static MemoryBudget detectAt(const std::string &root, u64 addressSpaceLeft);

  /// An Exhausted error that states both numbers and `advice` ("lower
  /// --context") if `bytes` exceed what is available. `what` names the taker
  /// ("the KV cache").
  Result<void> check(u64 bytes, std::string_view what,
                     std::string_view advice) const;
};

/// "12.5 MiB", for messages.
std::string formatBytes(u64 bytes);

/// The largest resident size of this process so far, in bytes.
u64 peakResidentBytes();

/// Owns an anonymous, zeroed, page-aligned mapping. Memory is taken only when
/// touched. Moving does not move the bytes.
class MemoryRegion {
public:
  MemoryRegion() = default;
  MemoryRegion(MemoryRegion &&other) noexcept;
  MemoryRegion &operator=(MemoryRegion &&other) noexcept;
  ~MemoryRegion();

  /// Maps `bytes` (0 gives an empty region). An Exhausted error names `what`
  /// and the bytes if the address space does not hold it.
  static Result<MemoryRegion> map(u64 bytes, std::string_view what);

  u8 *data() const { return base; }
  u64 size() const { return length; }

private:
  u8 *base = nullptr;
  u64 length = 0;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_DEVICE_MEMORY_H

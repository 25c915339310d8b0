/// \file
/// What `lathe plan` finds out, as tables or as JSON.
#ifndef LATHE_TOOLS_LATHE_PLANREPORT_H
#define LATHE_TOOLS_LATHE_PLANREPORT_H

#include "runtime/schedule/MemoryPlan.h"
#include "tools/lathe/ModelSizes.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lathe::tools {

/// A device and how fast it reads its memory.
struct DeviceBandwidth {
  std::string name;
  f64 bytesPerSecond = 0;
};

struct PlanReport {
  std::string source; ///< "gguf", "engine", "config" or "preset".
  ModelSizes model;
  std::string kvDtype;
  u32 context = 0;         ///< That is asked for, or the model's.
  std::string precision;   ///< Of the weights that are planned for; "as-is".
  u64 weightBytes = 0;     ///< Of these.
  u64 weightBytesRead = 0; ///< Of these, per token.
  /// Whether buffers are those of the compiled program.
  bool exactArena = false;
  /// What memory it is planned for: "--memory", "h100", "this machine".
  std::string memoryName;
  /// Whether the user named it: that it is too small is an error then.
  bool memoryIsAsked = false;
  std::optional<runtime::MemoryPlan> plan;
  /// Why there is no plan: what does not fit.
  std::string misfit;
  std::vector<DeviceBandwidth> devices;

  /// Bytes that a token reads when its sequence has so many.
  u64 bytesPerToken(u64 tokens) const;
  void print() const;
  nlohmann::ordered_json json() const;
};

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_PLANREPORT_H

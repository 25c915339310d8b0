/// \file
/// What lathe explain found: the costs and times of a step's launches against
/// the machine's limits, as text, JSON and a plot.
#ifndef LATHE_TOOLS_LATHE_STEPREPORT_H
#define LATHE_TOOLS_LATHE_STEPREPORT_H

#include "runtime/engine/StepCost.h"
#include "runtime/schedule/LoadedEngine.h"
#include "runtime/schedule/StepProfile.h"

#include "tools/lathe/StepLimits.h"

#include <algorithm>
#include <string>
#include <vector>

namespace lathe::tools {

/// One launch, or all launches of one kernel.
struct StepRow {
  std::string entry;   ///< "body", "head"
  std::string symbol;  ///< Of the kernel.
  std::string summary; ///< What the kernel is.
  std::string skeleton;
  std::string label; ///< The model's name for a launch; "" for kernels.
  std::vector<std::string> formats; ///< Of the weights.
  u32 launches = 0;
  runtime::LaunchCost cost; ///< Sums over the launches, as the next two.
  runtime::LaunchTime time; ///< Seconds.
  f64 limit = 0;            ///< Seconds.

  f64 share() const { return time.slowest > 0 ? limit / time.slowest : 0; }
  /// What binds it: "bandwidth" or "compute", whichever limit is the larger, if
  /// that limit is at least half of its time; otherwise "overhead".
  const char *binds(const StepLimits &limits) const;
};

struct StepReport {
  std::string model; ///< As the user called it.
  std::string target;
  std::string cpu;
  u32 threads = 0;
  u32 sequences = 0, context = 0, rows = 0; ///< rows: of each sequence.
  u32 repetitions = 0;
  u32 barriers = 0; ///< Of a step.
  StepLimits limits;
  runtime::StepTime time; ///< Seconds.
  std::vector<StepRow> launches;
  std::vector<StepRow> kernels; ///< In the order of their first launches.

  /// Fills `launches` and `kernels` from `time`, which has the launches of the
  /// engine's `body` and `head`.
  void addRows(const runtime::LoadedEngine &engine,
               const runtime::StepShape &shape);

  StepRow total() const;
  f64 tokensPerSecond() const { return sequences * rows / time.wall; }
};

/// Writes the report to standard output; `all`: each launch, too.
void printStepJson(const StepReport &report, bool all);
void printStepText(const StepReport &report, bool all);

/// A roofline plot as an SVG document: operations per second over operations
/// per byte, with the limits as roofs and a point for each kernel that has
/// operations to count.
std::string rooflineSvg(const StepReport &report);

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_STEPREPORT_H

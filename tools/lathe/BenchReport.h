/// \file
/// What lathe bench found, as text, JSON and a plot.
#ifndef LATHE_TOOLS_LATHE_BENCHREPORT_H
#define LATHE_TOOLS_LATHE_BENCHREPORT_H

#include "runtime/schedule/LoadedEngine.h"
#include "tools/lathe/BenchMeasure.h"
#include "tools/lathe/CurvePlot.h"
#include "tools/lathe/StepLimits.h"

#include <string>
#include <vector>

namespace lathe::tools {

/// What a token row costs, by the engine's own account.
struct BenchCosts {
  u64 weightBytes = 0;           ///< Read by a step of one row with its logits.
  runtime::LaunchCost perRow;    ///< Of `body`, with one key to see.
  runtime::LaunchCost perLogits; ///< Of `head`.

  /// With `pick`, bytes are those of a step that picks, where the engine can.
  static BenchCosts of(const runtime::LoadedEngine &engine, bool pick);
};

struct BenchReport {
  std::string cpu;
  u32 threads = 0;
  BenchCosts costs;
  StepLimits limits;
  std::vector<Measurement> results;
};

/// Writes the report to standard output.
void printBenchJson(const BenchReport &report);
void printBenchText(const BenchReport &report);

/// The seconds over the tokens of each kind of generation. `model` is what the
/// user called it.
CurvePlot plotOf(const std::string &model, const BenchReport &report);

} // namespace lathe::tools

#endif // LATHE_TOOLS_LATHE_BENCHREPORT_H

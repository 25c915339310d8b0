#include "tools/lathe/BenchReport.h"

#include "runtime/support/Quote.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

using namespace lathe;
using namespace lathe::tools;
using runtime::displayPath;

namespace {

/// The share of the limit that binds a test: the memory's bandwidth for
/// generation, arithmetic for prefill.
f64 shareOf(const Measurement &result, const BenchReport &report) {
  const BenchCosts &costs = report.costs;
  f64 speed = result.tokensPerSecond.median;
  if (!result.test.prefill)
    return speed * f64(costs.weightBytes) / report.limits.bandwidth;
  return speed *
         (report.limits.computeTime(costs.perRow) +
          report.limits.computeTime(costs.perLogits) / result.test.tokens);
}

} // namespace

BenchCosts BenchCosts::of(const runtime::LoadedEngine &engine, bool pick) {
  const auto &program = engine.manifestProgram();
  pick = pick && engine.program().pick;
  BenchCosts costs;
  for (const auto *entry : *program.entries()) {
    std::string_view name = entry->name()->string_view();
    bool isRead = name == "body" || name == (pick ? "pick" : "head");
    if (!isRead && name != "head")
      continue;
    for (const auto *launch : *entry->launches()) {
      const auto &kernel = *(*program.kernels())[launch->kernel()];
      costs.weightBytes += isRead ? kernel.weight_bytes() : 0;
      if (name != "pick")
        (name == "body" ? costs.perRow : costs.perLogits) += runtime::costOf(
            engine.engine().manifest(), program, *launch,
            {.sequences = {{.start = 0, .rows = 1}}, .headRows = 1});
    }
  }
  return costs;
}

void tools::printBenchJson(const BenchReport &report) {
  auto list = nlohmann::ordered_json::array();
  for (const Measurement &result : report.results) {
    nlohmann::ordered_json row = {{"test", result.test.name},
                                  {"tokens_per_second",
                                   {{"median", result.tokensPerSecond.median},
                                    {"min", result.tokensPerSecond.min},
                                    {"max", result.tokensPerSecond.max}}},
                                  {"seconds", result.seconds}};
    if (!result.test.prefill)
      row["last_token_ms"] = result.lastStep * 1e3;
    if (result.test.kv)
      row[result.test.prefill ? "compute_share" : "bandwidth_share"] =
          shareOf(result, report);
    if (result.test.prefill)
      row["arithmetic"] = report.limits.arithmeticOf(report.costs.perRow);
    list.push_back(std::move(row));
  }
  printJson({{"cpu", report.cpu},
             {"threads", report.threads},
             {"limits", report.limits.json()},
             {"weight_bytes_per_token", report.costs.weightBytes},
             {"results", std::move(list)}});
}

void tools::printBenchText(const BenchReport &report) {
  printOut("{}, {}\n"
           "limits measured now: {}\n"
           "a generated token reads {:.1f} MB of weights\n\n"
           "{:<18}{:>10}{:>10}{:>10}{:>10}{:>12}\n"
           "{:<18}{:>30}{:>10}{:>12}\n",
           report.cpu, counted(report.threads, "thread"), report.limits.text(),
           f64(report.costs.weightBytes) / 1e6, "test", "median", "min", "max",
           "time", "last token", "", "tokens/s", "s", "ms");
  for (const Measurement &result : report.results) {
    const Spread &speed = result.tokensPerSecond;
    std::string last =
        result.test.prefill ? "" : fmt::format("{:.1f}", result.lastStep * 1e3);
    std::string share;
    if (result.test.kv)
      share = fmt::format(
          "   {:.0f} % of {}", shareOf(result, report) * 100,
          result.test.prefill
              ? fmt::format("the {} limit",
                            report.limits.arithmeticOf(report.costs.perRow))
              : "the memory's bandwidth");
    printOut("{:<18}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.2f}{:>12}{}\n",
             result.test.name, speed.median, speed.min, speed.max,
             result.seconds, last, share);
  }
}

CurvePlot tools::plotOf(const std::string &model, const BenchReport &report) {
  CurvePlot plot;
  plot.title = fmt::format(
      "Time to generate, {}",
      displayPath(std::filesystem::path(model).filename().string()));
  plot.note = fmt::format(
      "{}, {}", displayPath(report.cpu.substr(0, report.cpu.find(" ("))),
      counted(report.threads, "thread"));
  plot.xLabel = "generated tokens";
  plot.yLabel = "time in s";
  plot.yUnit = "s";
  for (const Measurement &result : report.results) {
    if (result.test.prefill)
      continue;
    std::string name = result.test.kv ? "KV cache on" : "KV cache off";
    if (result.test.depth != 0)
      name += fmt::format(", d{}", result.test.depth);
    auto curve = std::ranges::find(plot.curves, name, &CurvePlot::Curve::name);
    if (curve == plot.curves.end())
      curve = plot.curves.insert(curve, {name, {}});
    curve->points.push_back({f64(result.test.tokens), result.seconds});
  }
  for (CurvePlot::Curve &curve : plot.curves)
    std::ranges::sort(curve.points, {}, &CurvePlot::Point::x);
  return plot;
}

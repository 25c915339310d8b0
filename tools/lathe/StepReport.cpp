#include "tools/lathe/StepReport.h"

#include "runtime/engine/Validate.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Terminal.h"

#include <algorithm>
#include <fmt/ranges.h>

using namespace lathe;
using namespace lathe::tools;
using runtime::displayPath;
using runtime::LaunchCost;
using runtime::LaunchTime;
using runtime::viewOf;
using Json = nlohmann::ordered_json;

namespace {

void add(LaunchTime &sum, const LaunchTime &time) {
  sum.slowest += time.slowest;
  sum.mean += time.mean;
  sum.after += time.after;
}

/// Operations per byte.
f64 intensity(const LaunchCost &cost) {
  return cost.bytes() == 0 ? 0 : f64(cost.ops()) / f64(cost.bytes());
}

Json jsonOf(const StepRow &row, const StepLimits &limits, bool isLaunch) {
  Json json = {{"entry", row.entry},
               {"kernel", displayPath(row.symbol)},
               {"summary", displayPath(row.summary)},
               {"skeleton", displayPath(row.skeleton)}};
  if (isLaunch)
    json["label"] = displayPath(row.label);
  json["formats"] = row.formats;
  json["launches"] = row.launches;
  json["weight_bytes"] = row.cost.weightBytes;
  json["kv_bytes"] = row.cost.kvBytes;
  json["activation_bytes"] = row.cost.activationBytes;
  json["int8_ops"] = row.cost.int8Ops;
  json["f32_ops"] = row.cost.f32Ops;
  json["bf16_ops"] = row.cost.bf16Ops;
  json["ops_per_byte"] = intensity(row.cost);
  json["seconds"] = row.time.slowest;
  json["limit_seconds"] = row.limit;
  json["limit_share"] = row.share();
  json["binds"] = row.binds(limits);
  json["uneven_seconds"] = row.time.slowest - row.time.mean;
  json["after_seconds"] = row.time.after;
  return json;
}

constexpr size_t nameWidth = 42;

void printRow(const StepRow &row, const std::string &name,
              const StepLimits &limits) {
  std::string ops = row.cost.ops() == 0 ? fmt::format("{:>9}{:>8}", "-", "-")
                                        : fmt::format("{:>9.2f}{:>8.2f}",
                                                      f64(row.cost.ops()) / 1e6,
                                                      intensity(row.cost));
  printOut("{:<{}.{}}{:>5}{:>9.3f}{}{:>10.1f}{:>9.1f}{:>6.0f}  {:<10}{:>8.1f}"
           "{:>8.1f}\n",
           name, nameWidth, nameWidth - 1, row.launches,
           f64(row.cost.bytes()) / 1e6, ops, row.time.slowest * 1e6,
           row.limit * 1e6, row.share() * 100, row.binds(limits),
           (row.time.slowest - row.time.mean) * 1e6, row.time.after * 1e6);
}

} // namespace

const char *StepRow::binds(const StepLimits &limits) const {
  if (limit < time.slowest / 2)
    return "overhead";
  return limits.bandwidthTime(cost) >= limits.computeTime(cost) ? "bandwidth"
                                                                : "compute";
}

void StepReport::addRows(const runtime::LoadedEngine &engine,
                         const runtime::StepShape &shape) {
  const auto &manifest = engine.engine().manifest();
  const auto &program = engine.manifestProgram();
  for (const char *name : {"body", "head"})
    for (const auto *entry : *program.entries()) {
      if (viewOf(entry->name()) != name)
        continue;
      for (const auto *launch : *entry->launches()) {
        const auto &kernel = *(*program.kernels())[launch->kernel()];
        StepRow row;
        row.entry = name;
        row.symbol = viewOf(kernel.symbol());
        row.summary = viewOf(kernel.summary());
        row.skeleton = viewOf(kernel.skeleton());
        row.label = viewOf(launch->label());
        row.formats = runtime::weightFormats(manifest, *launch);
        row.launches = 1;
        row.cost = runtime::costOf(manifest, program, *launch, shape);
        row.time = time.launches[launches.size()];
        row.limit = limits.time(row.cost);
        launches.push_back(std::move(row));
      }
    }
  for (const StepRow &launch : launches) {
    auto same = [&](const StepRow &kernel) {
      return kernel.entry == launch.entry && kernel.symbol == launch.symbol;
    };
    auto kernel = std::ranges::find_if(kernels, same);
    if (kernel == kernels.end()) {
      kernels.push_back(launch);
      kernels.back().label.clear();
      continue;
    }
    kernel->launches += 1;
    kernel->cost += launch.cost;
    kernel->limit += launch.limit;
    add(kernel->time, launch.time);
  }
}

StepRow StepReport::total() const {
  StepRow sum;
  for (const StepRow &kernel : kernels) {
    sum.launches += kernel.launches;
    sum.cost += kernel.cost;
    sum.limit += kernel.limit;
    add(sum.time, kernel.time);
  }
  return sum;
}

void tools::printStepJson(const StepReport &report, bool all) {
  StepRow total = report.total();
  Json kernels = Json::array();
  for (const StepRow &row : report.kernels)
    kernels.push_back(jsonOf(row, report.limits, false));
  Json json = {{"model", report.model},
               {"target", report.target},
               {"cpu", report.cpu},
               {"threads", report.threads},
               {"sequences", report.sequences},
               {"context", report.context},
               {"rows", report.rows},
               {"repetitions", report.repetitions},
               {"limits", report.limits.json()},
               {"step",
                {{"seconds", report.time.wall},
                 {"tokens_per_second", report.tokensPerSecond()},
                 {"limit_seconds", total.limit},
                 {"limit_share", total.limit / report.time.wall},
                 {"launches", total.launches},
                 {"barriers", report.barriers},
                 {"weight_bytes", total.cost.weightBytes},
                 {"kv_bytes", total.cost.kvBytes},
                 {"activation_bytes", total.cost.activationBytes},
                 {"int8_ops", total.cost.int8Ops},
                 {"f32_ops", total.cost.f32Ops},
                 {"bf16_ops", total.cost.bf16Ops},
                 {"work_seconds", total.time.mean},
                 {"uneven_seconds", total.time.slowest - total.time.mean},
                 {"between_seconds", total.time.after},
                 {"outside_seconds", report.time.outside}}},
               {"kernels", kernels}};
  if (all) {
    Json launches = Json::array();
    for (const StepRow &row : report.launches)
      launches.push_back(jsonOf(row, report.limits, true));
    json["launches"] = std::move(launches);
  }
  printJson(json);
}

void tools::printStepText(const StepReport &report, bool all) {
  StepRow total = report.total();
  printOut("{}, {}, {}\n"
           "a step of {} with {} each behind {}, {} repetitions\n"
           "limits measured now: {}\n\n",
           report.cpu, report.target, counted(report.threads, "thread"),
           counted(report.sequences, "sequence"), counted(report.rows, "row"),
           counted(report.context, "token"), report.repetitions,
           report.limits.text());
  printOut("{:<{}}{:>5}{:>9}{:>9}{:>8}{:>10}{:>9}{:>6}  {:<10}{:>8}{:>8}\n"
           "{:<{}}{:>5}{:>9}{:>9}{:>8}{:>10}{:>9}{:>6}  {:<10}{:>8}{:>8}\n",
           "kernel", nameWidth, "runs", "bytes", "ops", "ops/B", "time",
           "limit", "of it", "binds", "uneven", "after", "", nameWidth, "",
           "MB", "M", "", "us", "us", "%", "", "us", "us");
  if (all)
    for (const StepRow &row : report.launches)
      printRow(row, printable(row.label.empty() ? row.summary : row.label),
               report.limits);
  else
    for (const StepRow &row : report.kernels)
      printRow(row, printable(row.summary), report.limits);

  auto part = [&](const std::string &name, f64 seconds) {
    printOut("{:<{}}{:>12.1f} us{:>6.1f} %\n", name, nameWidth, seconds * 1e6,
             seconds / report.time.wall * 100);
  };
  write("\n");
  part("launches, if all threads had as much", total.time.mean);
  part("the slowest thread's more", total.time.slowest - total.time.mean);
  part(fmt::format("between launches, {} barriers", report.barriers),
       total.time.after);
  part("outside: batch, team, last barriers", report.time.outside);
  part("step", report.time.wall);
  printOut("\n{:.1f} tokens/s, {:.1f} % of the limit; reads {:.2f} MB of "
           "weights and {:.2f} MB of KV cache\n",
           report.tokensPerSecond(), total.limit / report.time.wall * 100,
           f64(total.cost.weightBytes) / 1e6, f64(total.cost.kvBytes) / 1e6);
}

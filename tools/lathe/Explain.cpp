/// \file
/// lathe explain: where the time of a step goes, and what bounds it.

#include "runtime/schedule/TracedSteps.h"
#include "tools/lathe/Checks.h"
#include "tools/lathe/Command.h"
#include "tools/lathe/Interrupt.h"
#include "tools/lathe/OpenModel.h"
#include "tools/lathe/PlotFile.h"
#include "tools/lathe/StepReport.h"
#include "tools/lathe/Terminal.h"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

using namespace lathe;
using namespace lathe::tools;
using runtime::StepTime;
using runtime::TracedSteps;

namespace {

struct Options {
  std::string model;
  u32 sequences = 1;
  /// Empty: 128, and 0 of a prefill step.
  std::optional<u32> context;
  std::optional<u32> prefill; ///< Rows of each sequence; empty: a decode step.
  /// Empty: as many as fit two seconds.
  std::optional<u32> repetitions;
  u32 threads = 0;
  ModelOptions open;
  std::string svg;
  bool all = false;
  bool json = false;
};

using Clock = std::chrono::steady_clock;

/// Time stamps and the steady clock, read together.
struct Instant {
  Clock::time_point clock = Clock::now();
  u64 stamp = __builtin_ia32_rdtsc();
};

f64 secondsBetween(const Instant &from, const Instant &to) {
  return std::chrono::duration<f64>(to.clock - from.clock).count();
}

/// Repeats the step and returns the typical one in seconds; nothing if the user
/// ended it.
Result<std::optional<StepTime>> measure(TracedSteps &steps,
                                        const Options &options,
                                        StepReport &report,
                                        Progress &progress) {
  constexpr u32 warmUps = 3, least = 8, most = 10000;
  constexpr f64 enoughSeconds = 2, leastSeconds = 0.05;
  runtime::StepTrace trace = steps.newTrace();
  std::vector<StepTime> times;
  for (u32 i = 0; i < warmUps; ++i)
    if (auto ran = steps.run(trace); !ran)
      return failFrom(ran);
  u32 barriers = steps.barriers();
  Instant start;
  auto isEnough = [&] {
    if (options.repetitions)
      return times.size() >= *options.repetitions;
    return times.size() >= most || (times.size() >= least &&
                                    secondsBetween(start, {}) >= enoughSeconds);
  };
  while (!isEnough()) {
    if (wasInterrupted())
      return std::optional<StepTime>();
    progress.update("steps", times.size(), options.repetitions.value_or(0));
    if (auto ran = steps.run(trace); !ran)
      return failFrom(ran);
    times.push_back(runtime::partsOf(trace, steps.threads()));
  }
  report.repetitions = u32(times.size());
  report.barriers = (steps.barriers() - barriers) / report.repetitions;
  // A few steps are too short to tell the stamps' rate from.
  Instant end;
  while (secondsBetween(start, end) < leastSeconds)
    end = {};
  f64 unit = secondsBetween(start, end) / f64(end.stamp - start.stamp);
  return std::optional(runtime::typicalStep(times, unit));
}

Result<int> explain(const Options &options) {
  warnOfThreads(options.threads);
  auto plot = PlotFile::open(options.svg, options.model);
  if (!plot)
    return failFrom(plot);
  auto engine = loadModel(options.model, options.open);
  if (!engine)
    return failFrom(engine);
  StepReport report;
  report.model = options.model;
  report.target = (*engine)->targetName();
  report.sequences = options.sequences;
  report.rows = options.prefill.value_or(1);
  report.context = options.context.value_or(options.prefill ? 0 : 128);
  auto steps = TracedSteps::create(*engine, {.sequences = report.sequences,
                                             .depth = report.context,
                                             .rows = report.rows,
                                             .threads = options.threads});
  if (!steps)
    return failFrom(steps);
  report.threads = (*steps)->threads();
  catchInterrupts();
  Progress progress;
  auto prepared = (*steps)->prepare([&](u32 done) {
    progress.update("context", done, report.context);
    return wasInterrupted();
  });
  if (wasInterrupted())
    return interruptedStatus();
  if (!prepared)
    return failFrom(prepared);
  runtime::CpuFeatures cpu = runtime::CpuFeatures::detect();
  report.cpu = cpu.summary();
  auto limits = StepLimits::measure(report.threads, report.target);
  if (!limits)
    return failFrom(limits);
  report.limits = *limits;
  auto time = measure(**steps, options, report, progress);
  if (!time)
    return failFrom(time);
  if (!*time)
    return interruptedStatus();
  report.time = std::move(**time);
  report.addRows(**engine, (*steps)->shape());
  progress.clear();
  options.json ? printStepJson(report, options.all)
               : printStepText(report, options.all);
  if (*plot)
    if (auto saved = plot->save(rooflineSvg(report)); !saved)
      return failFrom(saved);
  return exitDone;
}

} // namespace

void tools::addExplain(const CommandLine &line) {
  auto options = std::make_shared<Options>();
  CLI::App *command = line.add(
      "explain", "Show where the time of a step goes, kernel by kernel",
      "  lathe explain smollm2 --context 2048\n"
      "  lathe explain model.lathe --batch 8 -t 2 --json\n"
      "  lathe explain smollm2 --prefill 512 --svg roofline.svg");
  command
      ->add_option("MODEL", options->model,
                   "A GGUF model, an engine, or the name of a local one")
      ->required();
  command
      ->add_option("-b,--batch", options->sequences,
                   "Sequences that the step evaluates together")
      ->check(wholeNumber(1, maxHeadRows))
      ->capture_default_str();
  command
      ->add_option("-c,--context", options->context,
                   "Tokens of each sequence before the step (default: 128; 0 "
                   "with --prefill)")
      ->check(wholeNumber(0, contextMax));
  command
      ->add_option("--prefill", options->prefill,
                   "A step of so many tokens of each sequence instead of one")
      ->check(wholeNumber(1, chunkMax));
  command
      ->add_option("-r,--repetitions", options->repetitions,
                   "How often the step is measured (default: for two seconds)")
      ->check(wholeNumber(1, 10000));
  addThreads(*command, options->threads);
  options->open.addTo(*command);
  command->add_flag("--all", options->all,
                    "Each launch instead of each kernel");
  command->add_flag("--json", options->json, "Print the results as JSON");
  command->add_option("--svg", options->svg, "Save a roofline plot");
  line.onGiven(command, [options] { return explain(*options); });
}

/// \file
/// lathe bench: how fast a model runs here, beside what the machine can do.

#include "runtime/schedule/Session.h"
#include "tools/lathe/BenchMeasure.h"
#include "tools/lathe/BenchReport.h"
#include "tools/lathe/Checks.h"
#include "tools/lathe/Command.h"
#include "tools/lathe/Interrupt.h"
#include "tools/lathe/OpenModel.h"
#include "tools/lathe/PlotFile.h"
#include "tools/lathe/ServeBench.h"
#include "tools/lathe/Terminal.h"

#include <algorithm>
#include <memory>
#include <optional>

using namespace lathe;
using namespace lathe::tools;
using runtime::Session;

namespace {

struct Options {
  std::string model;
  std::vector<u32> prompts = {512};
  std::vector<u32> answers = {128};
  std::vector<u32> depths = {0};
  /// Empty: 5, and 1 without a KV cache.
  std::optional<u32> repetitions;
  std::vector<std::string> kvCache = {"on"};
  std::string svg; ///< Where the plot goes; empty: nowhere.
  std::string head = "full";
  runtime::SessionOptions session;
  ModelOptions open;
  bool json = false;
  bool isServe = false;
  ServeBenchOptions serve;
};

/// The tests with or without a KV cache. Prefill is one step in any case and is
/// measured with it only.
std::vector<BenchCase> casesOf(const Options &options, bool kv) {
  std::vector<BenchCase> cases;
  for (u32 depth : options.depths) {
    std::string suffix = depth == 0 ? "" : fmt::format("@d{}", depth);
    for (u32 tokens : options.prompts)
      if (tokens != 0 && kv)
        cases.push_back(
            {fmt::format("pp{}{}", tokens, suffix), true, tokens, depth, kv});
    std::string pick = options.head == "pick" ? "-pick" : "";
    for (u32 tokens : options.answers)
      if (tokens != 0)
        cases.push_back({fmt::format("tg{}{}{}{}", tokens, pick, suffix,
                                     kv ? "" : "@kv-off"),
                         false, tokens, depth, kv});
  }
  return cases;
}

/// The tests of one engine, with or without a KV cache. Adds to `report`;
/// false if the user ended it.
Result<bool> benchEngine(const Options &options, bool kv,
                         std::shared_ptr<const runtime::Engine> opened,
                         BenchReport &report, Progress &progress) {
  std::vector<BenchCase> cases = casesOf(options, kv);
  u64 context = 0;
  for (const BenchCase &test : cases)
    context = std::max(context, u64(test.depth) + test.tokens);
  auto engine = loadCode(opened, options.open);
  if (!engine)
    return failFrom(engine);
  runtime::SessionOptions sessionOptions = options.session;
  sessionOptions.context = u32(context);
  sessionOptions.names = {.context = "-d, -p or -n", .chunk = "-b"};
  auto session = Session::create(*engine, sessionOptions);
  if (!session)
    return failFrom(session);
  if (report.threads == 0) {
    report.threads = (*session)->threads();
    report.cpu = runtime::CpuFeatures::detect().summary();
    auto limits = StepLimits::measure(report.threads, (*engine)->targetName());
    if (!limits)
      return failFrom(limits);
    report.limits = *limits;
    report.costs = BenchCosts::of(**engine, options.head == "pick");
  }
  BenchRunner runner(**session, options.head == "pick");
  u32 repetitions = options.repetitions.value_or(kv ? 5 : 1);
  for (const BenchCase &test : cases) {
    auto result = runner.measure(test, repetitions, progress);
    if (wasInterrupted())
      return false;
    if (!result)
      return failFrom(result, test.name);
    report.results.push_back(std::move(*result));
  }
  return true;
}

Result<int> bench(const Options &options) {
  if (options.isServe) {
    ServeBenchOptions serve = options.serve;
    serve.serving.threads = options.session.threads;
    serve.serving.stepRows = options.session.chunk;
    return benchServe(options.model, options.open, serve, options.json);
  }
  // With the cache first: its engine's costs are the ones to report.
  std::vector<bool> modes;
  for (bool kv : {true, false})
    if (std::ranges::count(options.kvCache, kv ? "on" : "off") != 0 &&
        !casesOf(options, kv).empty())
      modes.push_back(kv);
  if (modes.empty())
    throw UsageError("-p and -n are 0: nothing to measure");
  if (!options.svg.empty() && casesOf(options, false).empty())
    throw UsageError("--svg shows generation, and -n is 0");

  warnOfThreads(options.session.threads);
  auto svg = PlotFile::open(options.svg, options.model);
  if (!svg)
    return failFrom(svg);
  std::vector<std::shared_ptr<const runtime::Engine>> engines;
  for (bool kv : modes) {
    ModelOptions open = options.open;
    if (!kv)
      open.disabledPhases = {"kv-cache-layout"};
    auto engine = openEngine(options.model, open);
    if (!engine)
      return failFrom(engine);
    engines.push_back(std::move(*engine));
  }
  catchInterrupts();
  BenchReport report;
  Progress progress;
  for (size_t i = 0; i < modes.size(); ++i) {
    auto finished =
        benchEngine(options, modes[i], std::move(engines[i]), report, progress);
    if (!finished)
      return failFrom(finished);
    if (!*finished)
      return interruptedStatus();
  }
  progress.clear();
  options.json ? printBenchJson(report) : printBenchText(report);
  if (*svg)
    if (auto saved = svg->save(plotOf(options.model, report).toSvg()); !saved)
      return failFrom(saved);
  return exitDone;
}

} // namespace

void tools::addBench(const CommandLine &line) {
  auto options = std::make_shared<Options>();
  CLI::App *command =
      line.add("bench", "Measure prefill and generation speed",
               "  lathe bench smollm2\n"
               "  lathe bench model.gguf -p 512 -n 128 -d 0,2048 -t 2 --json\n"
               "  lathe bench smollm2 --kv-cache off,on -p 0 "
               "-n 64,128,256,512 --svg kv.svg\n"
               "  lathe bench smollm2 --serve --static");
  command
      ->add_option("MODEL", options->model,
                   "A GGUF model, an engine, or the name of a local one")
      ->required();
  auto list = [&](const char *name, std::vector<u32> &values,
                  const char *text) {
    command->add_option(name, values, text)
        ->allow_extra_args(false)
        ->delimiter(',')
        ->check(wholeNumber(0, contextMax))
        ->capture_default_str();
  };
  list("-p,--prompt", options->prompts, "Tokens to prefill; 0: none");
  list("-n,--generate", options->answers, "Tokens to generate; 0: none");
  list("-d,--depth", options->depths, "Tokens in the cache before that");
  command
      ->add_option("-r,--repetitions", options->repetitions,
                   "How often each test is measured (default: 5; 1 without a "
                   "KV cache)")
      ->check(wholeNumber(1, 10000));
  command
      ->add_option("--kv-cache", options->kvCache,
                   "off: generate without a KV cache, the whole sequence in "
                   "each step; needs a model file")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->check(CLI::IsMember({"off", "on"}))
      ->default_str("on");
  command->add_option("--svg", options->svg,
                      "Save a plot of the generation times");
  addThreads(*command, options->session.threads);
  command
      ->add_option("-b,--batch", options->session.chunk,
                   "Rows of a prefill step")
      ->check(wholeNumber(1, chunkMax))
      ->capture_default_str();
  command
      ->add_option("--head", options->head,
                   "full: all logits of a token; pick: the chosen token, too")
      ->check(CLI::IsMember({"full", "pick"}))
      ->capture_default_str();
  options->open.addTo(*command);
  command->add_flag("--json", options->json, "Print the results as JSON");
  CLI::Option *serve = command->add_flag(
      "--serve", options->isServe,
      "Measure many requests at once, as lathe serve evaluates them");
  for (CLI::Option *other : addServeBenchOptions(*command, options->serve))
    other->needs(serve);
  line.onGiven(command, [options] { return bench(*options); });
}

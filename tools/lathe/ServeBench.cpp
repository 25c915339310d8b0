#include "tools/lathe/ServeBench.h"

#include "runtime/device/CpuFeatures.h"
#include "tools/lathe/Checks.h"
#include "tools/lathe/Interrupt.h"
#include "tools/lathe/Terminal.h"

#include <spdlog/spdlog.h>

using namespace lathe;
using namespace lathe::tools;
using namespace lathe::runtime;

namespace {

/// `share` in [0, 1] of the ascending values; 0 if there are none.
f64 quantile(const std::vector<f64> &ascending, f64 share) {
  if (ascending.empty())
    return 0;
  return ascending[std::min(ascending.size() - 1,
                            size_t(share * f64(ascending.size())))];
}

f64 ratio(u64 part, u64 whole) {
  return whole == 0 ? 0 : f64(part) / f64(whole);
}

struct Figures {
  f64 tokensPerSecond; ///< That were asked for.
  f64 rowOccupancy;    ///< Of the rows that decode steps had room for.
};

Result<LoadOutcome> measure(std::shared_ptr<const LoadedEngine> engine,
                            const std::vector<LoadRequest> &load,
                            ServingOptions serving, bool isStatic) {
  serving.prefixCache &= !isStatic;
  if (isStatic)
    serving.drafts = {};
  for (const LoadRequest &request : load)
    serving.context =
        std::max(serving.context, u32(request.prompt.size()) + request.answer);
  auto served = ServingEngine::create(std::move(engine), serving);
  if (!served)
    return failFrom(served);
  if (const std::string &notice = (*served)->memory().notice; !notice.empty())
    spdlog::warn("{}", notice);
  Progress progress;
  return serveLoad(**served, load, serving.maxRunning, isStatic, progress);
}

nlohmann::ordered_json quantiles(const std::vector<f64> &seconds) {
  return {{"p50", quantile(seconds, 0.5) * 1e3},
          {"p99", quantile(seconds, 0.99) * 1e3}};
}

} // namespace

Result<int> tools::benchServe(const std::string &model,
                              const ModelOptions &open,
                              ServeBenchOptions options, bool json) {
  warnOfThreads(options.serving.threads);
  auto engine = loadModel(model, open);
  if (!engine)
    return failFrom(engine);
  auto drafts = options.drafts.load(open);
  if (!drafts)
    return failFrom(drafts);
  options.serving.drafts = std::move(*drafts);
  catchInterrupts();
  options.serving.maxRunning = options.load.concurrency;
  options.serving.names = {.context = "--mean-prompt or --mean-answer",
                           .requests = "--concurrency",
                           .stepRows = "--batch"};
  std::vector<LoadRequest> load =
      makeLoad(options.load, (*engine)->program().vocab);
  u64 wanted = 0;
  for (const LoadRequest &request : load)
    wanted += request.answer;

  auto outcome = measure(*engine, load, options.serving, false);
  if (wasInterrupted())
    return interruptedStatus();
  if (!outcome)
    return failFrom(outcome);
  const SchedulerStats &stats = outcome->stats;
  Figures continuous{f64(outcome->answered) / outcome->seconds,
                     ratio(stats.decodeRows, stats.decodeSlots)};
  std::optional<Figures> padded;
  if (options.withStatic) {
    auto other = measure(*engine, padToGroups(load, options.load.concurrency),
                         options.serving, true);
    if (wasInterrupted())
      return interruptedStatus();
    if (!other)
      return failFrom(other);
    padded = Figures{f64(wanted) / other->seconds,
                     ratio(wanted, other->stats.tokens)};
  }
  f64 waste = 1 - ratio(stats.heldTokens, stats.reservedTokens);
  f64 hits = ratio(stats.cachedTokens, stats.queriedTokens);
  if (json) {
    nlohmann::ordered_json document = {
        {"cpu", CpuFeatures::detect().summary()},
        {"target", (*engine)->targetName()},
        {"requests", load.size()},
        {"concurrency", options.load.concurrency},
        {"seconds", outcome->seconds},
        {"output_tokens", outcome->answered},
        {"output_tokens_per_second", continuous.tokensPerSecond},
        {"ttft_ms", quantiles(outcome->firstTokens)},
        {"itl_ms", quantiles(outcome->betweenTokens)},
        {"kv_waste", waste},
        {"row_occupancy", continuous.rowOccupancy},
        {"prefix_hit_rate", hits},
        {"preemptions", stats.preemptions},
        {"drafted_tokens", stats.speculation.drafted},
        {"accepted_tokens", stats.speculation.accepted},
        {"steps", stats.steps}};
    if (padded)
      document["static"] = {
          {"output_tokens_per_second", padded->tokensPerSecond},
          {"row_occupancy", padded->rowOccupancy}};
    printJson(document);
    return exitDone;
  }
  printOut("{} requests, {} at a time: {} tokens in {:.1f} s\n", load.size(),
           options.load.concurrency, outcome->answered, outcome->seconds);
  printOut("  output            {:8.1f} tokens/s\n",
           continuous.tokensPerSecond);
  auto latency = [](const char *name, const std::vector<f64> &seconds) {
    printOut("  {:<16}  {:8.1f} ms half of them, {:.1f} ms 99 %\n", name,
             quantile(seconds, 0.5) * 1e3, quantile(seconds, 0.99) * 1e3);
  };
  latency("first token", outcome->firstTokens);
  latency("between tokens", outcome->betweenTokens);
  printOut("  KV waste          {:8.1f} %\n  rows occupied     {:8.1f} %\n"
           "  prefix cache hits {:8.1f} %\n",
           waste * 100, continuous.rowOccupancy * 100, hits * 100);
  if (padded)
    printOut("static batches of {}: {:.1f} tokens/s, rows occupied {:.1f} %; "
             "continuous is {:.2f} times as fast\n",
             options.load.concurrency, padded->tokensPerSecond,
             padded->rowOccupancy * 100,
             continuous.tokensPerSecond / padded->tokensPerSecond);
  return exitDone;
}

std::vector<CLI::Option *>
tools::addServeBenchOptions(CLI::App &command, ServeBenchOptions &options) {
  std::vector<CLI::Option *> added;
  auto add = [&](const char *name, auto &value, u64 least, u64 most,
                 const char *text) {
    added.push_back(command.add_option(name, value, text)
                        ->check(wholeNumber(least, most))
                        ->capture_default_str());
  };
  LoadOptions &load = options.load;
  add("--requests", load.requests, 1, 1 << 20, "How many");
  add("--concurrency", load.concurrency, 1, 4096, "In progress at a time");
  add("--mean-prompt", load.meanPrompt, 1, contextMax,
      "Mean tokens of a prompt; lengths are log-normal");
  add("--mean-answer", load.meanAnswer, 1, contextMax,
      "Mean tokens of an answer");
  add("--shared-prompt", load.sharedPrompt, 0, contextMax,
      "Tokens that all prompts start with, besides");
  add("--load-seed", load.seed, 0, ~u64(0), "Of lengths and prompts");
  added.push_back(
      command.add_flag("--static", options.withStatic,
                       "Measure static batches of the same requests, too"));
  for (CLI::Option *option : options.drafts.addTo(command))
    added.push_back(option);
  for (CLI::Option *option : added)
    option->group("With --serve");
  return added;
}

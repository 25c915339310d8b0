/// \file
/// lathe bench: how fast a model runs here, beside what the machine can do.

#include "runtime/sample/Pick.h"
#include "runtime/schedule/Session.h"
#include "runtime/support/AtomicFile.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Command.h"
#include "tools/lathe/CurvePlot.h"
#include "tools/lathe/Interrupt.h"
#include "tools/lathe/MachineLimits.h"
#include "tools/lathe/OpenModel.h"
#include "tools/lathe/Terminal.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <spdlog/spdlog.h>

using namespace lathe;
using namespace lathe::tools;
using runtime::displayPath;
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
};

/// Prefill of `tokens`, or generation of so many, behind `depth` tokens.
struct Case {
  std::string name;
  bool prefill;
  u32 tokens;
  u32 depth;
  bool kv; ///< False: each step evaluates the whole sequence again.
};

struct Spread {
  f64 median, min, max;
};

/// Of each repetition.
struct Times {
  std::vector<f64> seconds;
  std::vector<f64> lastStep; ///< Seconds of the last generated token.
};

struct Measurement {
  Case test;
  Spread tokensPerSecond;
  f64 seconds;  ///< Median, as the next.
  f64 lastStep; ///< Seconds; of generation.
};

/// What a token row costs, by the engine's own account.
struct Costs {
  u64 weightBytes = 0;   ///< Read by a step of one row with its logits.
  u64 macsPerRow = 0;    ///< Of `body`.
  u64 macsPerLogits = 0; ///< Of `head`.
};

/// The tests with or without a KV cache. Prefill is one step in any case and is
/// measured with it only.
std::vector<Case> casesOf(const Options &options, bool kv) {
  std::vector<Case> cases;
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

Costs costsOf(const runtime::LoadedEngine &engine) {
  const auto &program = engine.manifestProgram();
  Costs costs;
  for (const auto *entry : *program.entries()) {
    std::string_view name = entry->name()->string_view();
    if (name != "body" && name != "head")
      continue;
    for (const auto *launch : *entry->launches()) {
      const auto &kernel = *(*program.kernels())[launch->kernel()];
      costs.weightBytes += kernel.weight_bytes();
      (name == "body" ? costs.macsPerRow : costs.macsPerLogits) +=
          kernel.macs_per_row();
    }
  }
  return costs;
}

Spread spreadOf(std::vector<f64> values) {
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  f64 median = values.size() % 2 ? values[middle]
                                 : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

class Bench {
public:
  Bench(Session &session, bool pick) : session(session), pick(pick) {}

  /// Times `repetitions` runs, after one to warm up: a whole one, but only a
  /// few steps where each evaluates the whole sequence.
  Result<Times> measure(const Case &test, u32 repetitions, Progress &progress) {
    Times times;
    for (u32 turn = 0; turn <= repetitions; ++turn) {
      progress.update(test.name, turn, repetitions + 1);
      if (auto ready = prepare(test.depth); !ready)
        return failFrom(ready);
      Case now = test;
      if (turn == 0 && !test.kv)
        now.tokens = std::min(test.tokens, shortWarmUp);
      auto start = Clock::now();
      auto done = test.prefill ? prefill(now) : generate(now, progress);
      if (!done)
        return failFrom(done);
      f64 seconds = secondsSince(start);
      if (turn != 0) {
        times.seconds.push_back(seconds);
        times.lastStep.push_back(lastStep);
      }
      if (wasInterrupted())
        return fail(ErrorKind::Environment, "interrupted");
    }
    return times;
  }

private:
  using Clock = std::chrono::steady_clock;
  static constexpr u32 shortWarmUp = 4;

  static f64 secondsSince(Clock::time_point start) {
    return std::chrono::duration<f64>(Clock::now() - start).count();
  }

  /// Any token will do; the same one at a position each time, so that a depth
  /// is evaluated once.
  i32 tokenAt(u32 position) const {
    u32 mixed = position * 2654435761u;
    return i32((mixed >> 8) % session.vocab());
  }

  std::vector<i32> tokensFrom(u32 position, u32 count) const {
    std::vector<i32> tokens(count);
    for (u32 i = 0; i < count; ++i)
      tokens[i] = tokenAt(position + i);
    return tokens;
  }

  Result<void> prepare(u32 depth) {
    if (session.tokens().size() >= depth)
      return session.truncate(depth);
    if (auto empty = session.truncate(0); !empty)
      return empty;
    return session.append(tokensFrom(0, depth));
  }

  Result<void> prefill(const Case &test) {
    auto done = session.append(tokensFrom(test.depth, test.tokens));
    if (done)
      session.logits();
    return done;
  }

  Result<void> generate(const Case &test, Progress &progress) {
    for (u32 i = 0; i < test.tokens && !wasInterrupted(); ++i) {
      if (!test.kv)
        progress.update(test.name, i, test.tokens);
      auto start = Clock::now();
      i32 token = tokenAt(test.depth + i);
      if (auto done = session.append({&token, 1}); !done)
        return done;
      auto logits = session.logits();
      if (pick) {
        // No engine has an entry point `pick` yet: this is its definition.
        auto best = runtime::pickFromLogits(logits, PickArgs{}, scratch);
        if (!best)
          return failFrom(best);
      }
      lastStep = secondsSince(start);
    }
    return {};
  }

  Session &session;
  bool pick;
  runtime::PickScratch scratch;
  f64 lastStep = 0;
};

Measurement summarize(const Case &test, const Times &times) {
  std::vector<f64> speeds;
  for (f64 seconds : times.seconds)
    speeds.push_back(test.tokens / seconds);
  return {test, spreadOf(speeds), spreadOf(times.seconds).median,
          spreadOf(times.lastStep).median};
}

/// The share of the limit that binds a test: the memory's bandwidth for
/// generation, int8 arithmetic for prefill.
f64 shareOf(const Measurement &result, const Costs &costs, f64 bandwidth,
            f64 int8) {
  f64 speed = result.tokensPerSecond.median;
  if (!result.test.prefill)
    return speed * f64(costs.weightBytes) / bandwidth;
  return speed *
         (f64(costs.macsPerRow) +
          f64(costs.macsPerLogits) / result.test.tokens) /
         int8;
}

struct Report {
  std::string cpu;
  u32 threads = 0;
  Costs costs;
  f64 bandwidth = 0; ///< Bytes per second.
  f64 int8 = 0;      ///< Multiply-accumulates per second.
  std::vector<Measurement> results;
};

void printAsJson(const Report &report) {
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
      row[result.test.prefill ? "int8_share" : "bandwidth_share"] =
          shareOf(result, report.costs, report.bandwidth, report.int8);
    list.push_back(std::move(row));
  }
  printJson({{"cpu", report.cpu},
             {"threads", report.threads},
             {"bandwidth_bytes_per_second", report.bandwidth},
             {"int8_macs_per_second", report.int8},
             {"weight_bytes_per_token", report.costs.weightBytes},
             {"results", std::move(list)}});
}

void printAsText(const Report &report) {
  printOut("{}, {} threads\n"
           "limits measured now: memory {:.1f} GB/s, int8 {:.0f} GMAC/s\n"
           "a generated token reads {:.1f} MB of weights\n\n"
           "{:<18}{:>10}{:>10}{:>10}{:>10}{:>12}\n"
           "{:<18}{:>30}{:>10}{:>12}\n",
           report.cpu, report.threads, report.bandwidth / 1e9,
           report.int8 / 1e9, f64(report.costs.weightBytes) / 1e6, "test",
           "median", "min", "max", "time", "last token", "", "tokens/s", "s",
           "ms");
  for (const Measurement &result : report.results) {
    const Spread &speed = result.tokensPerSecond;
    std::string last =
        result.test.prefill ? "" : fmt::format("{:.1f}", result.lastStep * 1e3);
    std::string share;
    if (result.test.kv)
      share = fmt::format(
          "   {:.0f} % of {}",
          shareOf(result, report.costs, report.bandwidth, report.int8) * 100,
          result.test.prefill ? "the int8 limit" : "the memory's bandwidth");
    printOut("{:<18}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.2f}{:>12}{}\n",
             result.test.name, speed.median, speed.min, speed.max,
             result.seconds, last, share);
  }
}

/// The seconds over the tokens of each kind of generation.
CurvePlot plotOf(const std::string &model, const Report &report) {
  CurvePlot plot;
  plot.title = fmt::format(
      "Time to generate, {}",
      displayPath(std::filesystem::path(model).filename().string()));
  plot.note = fmt::format(
      "{}, {} threads",
      displayPath(report.cpu.substr(0, report.cpu.find(" ("))), report.threads);
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

Result<void> writeFile(const std::string &path, const std::string &text) {
  auto file = runtime::AtomicFile::create(path);
  if (!file)
    return failFrom(file);
  if (auto written = file->append(
          {reinterpret_cast<const u8 *>(text.data()), text.size()});
      !written)
    return written;
  return file->commit();
}

/// The tests of one engine, with or without a KV cache. Adds to `report`;
/// false if the user ended it.
Result<bool> benchEngine(const Options &options, bool kv,
                         std::shared_ptr<const runtime::Engine> opened,
                         Report &report, Progress &progress) {
  std::vector<Case> cases = casesOf(options, kv);
  u64 context = 0;
  for (const Case &test : cases)
    context = std::max(context, u64(test.depth) + test.tokens);
  if (context > ~0u)
    throw UsageError("-d and -p or -n are too large together");
  auto engine = loadCode(std::move(opened), options.open);
  if (!engine)
    return failFrom(engine);
  runtime::SessionOptions sessionOptions = options.session;
  sessionOptions.context = u32(context);
  auto session = Session::create(*engine, sessionOptions);
  if (!session)
    return failFrom(session);
  if (report.threads == 0) {
    report.threads = (*session)->threads();
    runtime::CpuFeatures cpu = runtime::CpuFeatures::detect();
    report.cpu = cpu.summary();
    auto bandwidth = measureBandwidth(report.threads);
    if (!bandwidth)
      return failFrom(bandwidth);
    auto int8 = measureInt8(report.threads, cpu);
    if (!int8)
      return failFrom(int8);
    report.bandwidth = *bandwidth;
    report.int8 = *int8;
    report.costs = costsOf(**engine);
  }
  Bench runner(**session, options.head == "pick");
  u32 repetitions = options.repetitions.value_or(kv ? 5 : 1);
  for (const Case &test : cases) {
    auto times = runner.measure(test, repetitions, progress);
    if (wasInterrupted())
      return false;
    if (!times)
      return failFrom(times, test.name);
    report.results.push_back(summarize(test, *times));
  }
  return true;
}

Result<int> bench(const Options &options) {
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
  Report report;
  Progress progress;
  for (size_t i = 0; i < modes.size(); ++i) {
    auto finished =
        benchEngine(options, modes[i], std::move(engines[i]), report, progress);
    if (!finished)
      return failFrom(finished);
    if (!*finished)
      return exitInterrupted;
  }
  progress.clear();
  options.json ? printAsJson(report) : printAsText(report);
  if (!options.svg.empty())
    if (auto saved =
            writeFile(options.svg, plotOf(options.model, report).toSvg());
        !saved)
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
               "-n 64,128,256,512 --svg kv.svg");
  command
      ->add_option("MODEL", options->model,
                   "A GGUF model, an engine, or the name of a local one")
      ->required();
  auto list = [&](const char *name, std::vector<u32> &values,
                  const char *text) {
    command->add_option(name, values, text)
        ->allow_extra_args(false)
        ->delimiter(',')
        ->capture_default_str();
  };
  list("-p,--prompt", options->prompts, "Tokens to prefill; 0: none");
  list("-n,--generate", options->answers, "Tokens to generate; 0: none");
  list("-d,--depth", options->depths, "Tokens in the cache before that");
  command
      ->add_option("-r,--repetitions", options->repetitions,
                   "How often each test is measured (default: 5; 1 without a "
                   "KV cache)")
      ->check(CLI::Range(1u, 10000u));
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
  command
      ->add_option("-t,--threads", options->session.threads,
                   "Threads (default: the CPUs this process may use)")
      ->check(CLI::Range(1u, runtime::ThreadTeam::maxThreads));
  command
      ->add_option("-b,--batch", options->session.chunk,
                   "Rows of a prefill step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--head", options->head,
                   "full: all logits of a token; pick: the chosen token, too")
      ->check(CLI::IsMember({"full", "pick"}))
      ->capture_default_str();
  options->open.addTo(*command);
  command->add_flag("--json", options->json, "Print the results as JSON");
  line.onGiven(command, [options] { return bench(*options); });
}

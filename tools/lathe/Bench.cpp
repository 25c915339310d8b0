/// \file
/// lathe bench: how fast a model runs here, beside what the machine can do.

#include "runtime/sample/Pick.h"
#include "runtime/schedule/Session.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Command.h"
#include "tools/lathe/Interrupt.h"
#include "tools/lathe/MachineLimits.h"
#include "tools/lathe/OpenModel.h"
#include "tools/lathe/Terminal.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <spdlog/spdlog.h>

using namespace lathe;
using namespace lathe::tools;
using runtime::Session;

namespace {

struct Options {
  std::string model;
  std::vector<u32> prompts = {512};
  std::vector<u32> answers = {128};
  std::vector<u32> depths = {0};
  u32 repetitions = 5;
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
};

struct Spread {
  f64 median, min, max;
};

struct Measurement {
  Case test;
  Spread tokensPerSecond;
};

/// What a token row costs, by the engine's own account.
struct Costs {
  u64 weightBytes = 0;   ///< Read by a step of one row with its logits.
  u64 macsPerRow = 0;    ///< Of `body`.
  u64 macsPerLogits = 0; ///< Of `head`.
};

std::vector<Case> casesOf(const Options &options) {
  std::vector<Case> cases;
  for (u32 depth : options.depths) {
    std::string suffix = depth == 0 ? "" : fmt::format("@d{}", depth);
    for (u32 tokens : options.prompts)
      if (tokens != 0)
        cases.push_back(
            {fmt::format("pp{}{}", tokens, suffix), true, tokens, depth});
    std::string pick = options.head == "pick" ? "-pick" : "";
    for (u32 tokens : options.answers)
      if (tokens != 0)
        cases.push_back({fmt::format("tg{}{}{}", tokens, pick, suffix), false,
                         tokens, depth});
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

  /// Tokens per second of each repetition; one more runs first to warm up.
  Result<std::vector<f64>> measure(const Case &test, u32 repetitions,
                                   Progress &progress) {
    std::vector<f64> speeds;
    for (u32 turn = 0; turn <= repetitions; ++turn) {
      progress.update(test.name, turn, repetitions + 1);
      if (auto ready = prepare(test.depth); !ready)
        return failFrom(ready);
      auto start = std::chrono::steady_clock::now();
      auto done = test.prefill ? prefill(test) : generate(test);
      if (!done)
        return failFrom(done);
      std::chrono::duration<f64> seconds =
          std::chrono::steady_clock::now() - start;
      if (turn != 0)
        speeds.push_back(test.tokens / seconds.count());
      if (wasInterrupted())
        return fail(ErrorKind::Environment, "interrupted");
    }
    return speeds;
  }

private:
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

  Result<void> generate(const Case &test) {
    for (u32 i = 0; i < test.tokens && !wasInterrupted(); ++i) {
      i32 token = tokenAt(test.depth + i);
      if (auto done = session.append({&token, 1}); !done)
        return done;
      auto logits = session.logits();
      if (!pick)
        continue;
      // No engine has an entry point `pick` yet: this is its definition.
      if (auto best = runtime::pickFromLogits(logits, PickArgs{}, scratch);
          !best)
        return failFrom(best);
    }
    return {};
  }

  Session &session;
  bool pick;
  runtime::PickScratch scratch;
};

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

void print(const Options &options, const std::string &cpu, u32 threads,
           const Costs &costs, f64 bandwidth, f64 int8,
           const std::vector<Measurement> &results) {
  if (options.json) {
    auto list = nlohmann::ordered_json::array();
    for (const Measurement &result : results)
      list.push_back({{"test", result.test.name},
                      {"tokens_per_second",
                       {{"median", result.tokensPerSecond.median},
                        {"min", result.tokensPerSecond.min},
                        {"max", result.tokensPerSecond.max}}},
                      {result.test.prefill ? "int8_share" : "bandwidth_share",
                       shareOf(result, costs, bandwidth, int8)}});
    printJson({{"cpu", cpu},
               {"threads", threads},
               {"bandwidth_bytes_per_second", bandwidth},
               {"int8_macs_per_second", int8},
               {"weight_bytes_per_token", costs.weightBytes},
               {"results", std::move(list)}});
    return;
  }
  printOut("{}, {} threads\n"
           "limits measured now: memory {:.1f} GB/s, int8 {:.0f} GMAC/s\n"
           "a generated token reads {:.1f} MB of weights\n\n"
           "{:<18}{:>10}{:>10}{:>10}   tokens/s\n",
           cpu, threads, bandwidth / 1e9, int8 / 1e9,
           f64(costs.weightBytes) / 1e6, "test", "median", "min", "max");
  for (const Measurement &result : results) {
    const Spread &speed = result.tokensPerSecond;
    printOut("{:<18}{:>10.1f}{:>10.1f}{:>10.1f}   {:.0f} % of {}\n",
             result.test.name, speed.median, speed.min, speed.max,
             shareOf(result, costs, bandwidth, int8) * 100,
             result.test.prefill ? "the int8 limit" : "the memory's bandwidth");
  }
}

Result<int> bench(const Options &options) {
  std::vector<Case> cases = casesOf(options);
  if (cases.empty())
    throw UsageError("-p and -n are 0: nothing to measure");
  u64 context = 0;
  for (const Case &test : cases)
    context = std::max(context, u64(test.depth) + test.tokens);
  if (context > ~0u)
    throw UsageError("-d and -p or -n are too large together");
  auto engine = loadModel(options.model, options.open);
  if (!engine)
    return failFrom(engine);
  runtime::SessionOptions sessionOptions = options.session;
  sessionOptions.context = u32(context);
  auto session = Session::create(*engine, sessionOptions);
  if (!session)
    return failFrom(session);
  u32 threads = (*session)->threads();
  runtime::CpuFeatures cpu = runtime::CpuFeatures::detect();
  auto bandwidth = measureBandwidth(threads);
  if (!bandwidth)
    return failFrom(bandwidth);
  auto int8 = measureInt8(threads, cpu);
  if (!int8)
    return failFrom(int8);

  catchInterrupts();
  Bench runner(**session, options.head == "pick");
  std::vector<Measurement> results;
  Progress progress;
  for (const Case &test : cases) {
    auto speeds = runner.measure(test, options.repetitions, progress);
    if (wasInterrupted())
      return exitInterrupted;
    if (!speeds)
      return failFrom(speeds, test.name);
    results.push_back({test, spreadOf(std::move(*speeds))});
  }
  progress.clear();
  print(options, cpu.summary(), threads, costsOf(**engine), *bandwidth, *int8,
        results);
  return exitDone;
}

} // namespace

void tools::addBench(const CommandLine &line) {
  auto options = std::make_shared<Options>();
  CLI::App *command =
      line.add("bench", "Measure prefill and generation speed",
               "  lathe bench smollm2\n"
               "  lathe bench model.gguf -p 512 -n 128 -d 0,2048 -t 2 --json");
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
                   "How often each test is measured")
      ->check(CLI::Range(1u, 10000u))
      ->capture_default_str();
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

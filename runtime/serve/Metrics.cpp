#include "runtime/serve/Metrics.h"

#include <array>
#include <limits>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sstream>

namespace lathe::runtime::serve {

namespace {

using Bounds = prometheus::Histogram::BucketBoundaries;

// All in seconds. The first ones of each are finer than vLLM's.
const Bounds firstTokenBounds = {
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
    1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
const Bounds nextTokenBounds = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
    0.4,   0.5,    0.75,  1,    2.5,   5,    7.5,   10,  20,   40,  80};
const Bounds requestBounds = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5,  0.8, 1,
                              1.5,   2,     2.5,  5,    10,  15,  20,   30,  40,
                              50,    60,    120,  240,  480, 960, 1920, 7680};

/// finished_reason of vLLM, by EndReason.
constexpr std::array finishedReasons = {"stop", "length", "abort", "abort",
                                        "error"};

f64 secondsBetween(Instant from, Instant to) {
  return to > from ? f64(to - from) * 1e-9 : 0;
}

} // namespace

/// What requests add to.
struct Metrics::Families {
  explicit Families(std::string modelName)
      : labels{{"model_name", std::move(modelName)}} {}

  prometheus::Histogram &histogram(const char *name, const char *help,
                                   const Bounds &bounds) {
    return prometheus::BuildHistogram()
        .Name(name)
        .Help(help)
        .Register(registry)
        .Add(labels, bounds);
  }

  prometheus::Counter &counter(const char *name, const char *help,
                               const prometheus::Labels &more = {}) {
    prometheus::Labels all = labels;
    all.insert(more.begin(), more.end());
    return prometheus::BuildCounter()
        .Name(name)
        .Help(help)
        .Register(registry)
        .Add(all);
  }

  prometheus::Counter &finished(const char *reason) {
    return counter("lathe:request_success_total",
                   "Answers that ended, by finished_reason.",
                   {{"finished_reason", reason}});
  }

  prometheus::Labels labels;
  prometheus::Registry registry{prometheus::Registry::InsertBehavior::Merge};

  prometheus::Histogram &firstToken = histogram(
      "lathe:time_to_first_token_seconds",
      "From a request's arrival to an answer's first token.", firstTokenBounds);
  prometheus::Histogram &nextToken =
      histogram("lathe:inter_token_latency_seconds",
                "From one token of an answer to the next.", nextTokenBounds);
  prometheus::Histogram &whole =
      histogram("lathe:e2e_request_latency_seconds",
                "From a request's arrival to an answer's end.", requestBounds);
  prometheus::Histogram &queue =
      histogram("lathe:request_queue_time_seconds",
                "From a request's arrival to its first step.", requestBounds);
  prometheus::Histogram &prefill = histogram(
      "lathe:request_prefill_time_seconds",
      "From a request's first step to an answer's first token.", requestBounds);
  prometheus::Histogram &decode =
      histogram("lathe:request_decode_time_seconds",
                "From an answer's first token to its end.", requestBounds);
  prometheus::Counter &promptTokens = counter(
      "lathe:prompt_tokens_total", "Tokens of prompts that were answered.");
  prometheus::Counter &generationTokens =
      counter("lathe:generation_tokens_total", "Generated tokens.");
  /// By EndReason; two share one.
  std::array<prometheus::Counter *, finishedReasons.size()> finishedBy = {
      &finished(finishedReasons[0]), &finished(finishedReasons[1]),
      &finished(finishedReasons[2]), &finished(finishedReasons[3]),
      &finished(finishedReasons[4])};
};

/// Times one request.
class Metrics::Meter : public RequestObserver {
public:
  Meter(std::shared_ptr<Families> families, const Request &request)
      : families(std::move(families)), arrived(ServingEngine::now()),
        promptTokens(u32(request.prompt.size())), answers(request.branches) {}

  void onToken(u32 branch, i32 /*token*/, Instant at) override {
    Times &times = answers[branch];
    if (times.first == 0) {
      times.first = at;
      families->firstToken.Observe(secondsBetween(arrived, at));
      countPrompt();
    } else {
      families->nextToken.Observe(secondsBetween(times.last, at));
    }
    times.last = at;
    families->generationTokens.Increment();
  }

  void onText(u32 /*branch*/, std::string_view /*text*/) override {}

  void onEnd(u32 branch, const End &end, const RequestFacts &facts) override {
    Instant now = ServingEngine::now();
    bool isDone =
        end.reason == EndReason::Stop || end.reason == EndReason::Length;
    families->finishedBy[u32(end.reason)]->Increment();
    families->whole.Observe(secondsBetween(arrived, now));
    if (facts.started != 0)
      families->queue.Observe(secondsBetween(facts.submitted, facts.started));
    if (Instant first = answers[branch].first) {
      families->prefill.Observe(secondsBetween(facts.started, first));
      families->decode.Observe(secondsBetween(first, now));
    } else if (isDone) { // no more than its prompt was asked for
      families->prefill.Observe(secondsBetween(facts.started, now));
      countPrompt();
    }
  }

private:
  struct Times {
    Instant first = 0, last = 0;
  };

  void countPrompt() {
    families->promptTokens.Increment(promptTokens);
    promptTokens = 0;
  }

  std::shared_ptr<Families> families;
  Instant arrived;
  u32 promptTokens; ///< Not counted yet.
  std::vector<Times> answers;
};

/// What the engine counts itself.
class Metrics::EngineValues : public prometheus::Collectable {
public:
  EngineValues(std::string modelName, std::function<ServingStats()> stats)
      : modelName(std::move(modelName)), stats(std::move(stats)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    ServingStats now = stats();
    const SchedulerStats &counts = now.scheduler;
    using Type = prometheus::MetricType;
    return {
        value("lathe:num_requests_running", "Answers that are evaluated.",
              Type::Gauge, counts.running),
        value("lathe:num_requests_waiting",
              "Requests and preempted answers that wait.", Type::Gauge,
              counts.waiting),
        value("lathe:kv_cache_usage_perc",
              "Share of the KV pages that requests hold, 0 to 1.", Type::Gauge,
              now.kvUsage),
        value("lathe:prefix_cache_queries_total",
              "Tokens that the prefix cache was asked for.", Type::Counter,
              f64(counts.queriedTokens)),
        value("lathe:prefix_cache_hits_total",
              "Tokens that the prefix cache had.", Type::Counter,
              f64(counts.cachedTokens)),
        value("lathe:num_preemptions_total",
              "Answers that gave up their pages and were evaluated again.",
              Type::Counter, f64(counts.preemptions)),
        value("lathe:spec_decode_num_drafts_total",
              "Drafts that the model checked.", Type::Counter,
              f64(counts.speculation.drafts)),
        value("lathe:spec_decode_num_draft_tokens_total", "Their tokens.",
              Type::Counter, f64(counts.speculation.drafted)),
        value("lathe:spec_decode_num_accepted_tokens_total",
              "Of these, the ones that became tokens of answers.",
              Type::Counter, f64(counts.speculation.accepted)),
    };
  }

private:
  prometheus::MetricFamily value(const char *name, const char *help,
                                 prometheus::MetricType type, f64 value) const {
    prometheus::ClientMetric metric;
    metric.label = {{"model_name", modelName}};
    metric.gauge.value = metric.counter.value = value;
    return {name, help, type, {metric}};
  }

  std::string modelName;
  std::function<ServingStats()> stats;
};

Metrics::Metrics(std::string modelName, std::function<ServingStats()> stats)
    : families(std::make_shared<Families>(modelName)),
      engineValues(std::make_unique<EngineValues>(std::move(modelName),
                                                  std::move(stats))) {}

Metrics::~Metrics() = default;

std::shared_ptr<RequestObserver>
Metrics::onRequest(const ObservedRequest &request) {
  return std::make_shared<Meter>(families, request.request);
}

std::string Metrics::text() const {
  std::vector<prometheus::MetricFamily> all = engineValues->Collect();
  for (prometheus::MetricFamily &family : families->registry.Collect())
    all.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(all);
}

} // namespace lathe::runtime::serve

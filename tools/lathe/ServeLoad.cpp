#include "tools/lathe/ServeLoad.h"

#include "runtime/schedule/AnyToken.h"
#include "tools/lathe/Interrupt.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <numbers>
#include <numeric>
#include <random>

using namespace lathe;
using namespace lathe::tools;
using namespace lathe::runtime;

namespace {

/// Of the lengths' logarithms: the answers of ShareGPT deviate by four fifths
/// of their mean.
constexpr f64 lengthSpread = 0.75;
/// The longest are cut to so many times the mean.
constexpr f64 longestOfMean = 5;

/// `count` lengths >= 1 of that mean.
std::vector<u32> drawLengths(u32 count, u32 mean, std::mt19937_64 &bits) {
  auto uniform = [&] { return (f64(bits() >> 11) + 0.5) * 0x1p-53; };
  std::vector<f64> lengths(count);
  for (f64 &length : lengths) {
    // Box and Muller's way, so that every C++ library draws the same.
    f64 normal = std::sqrt(-2 * std::log(uniform())) *
                 std::cos(2 * std::numbers::pi * uniform());
    length = std::min(std::exp(normal * lengthSpread - lengthSpread / 2),
                      longestOfMean);
  }
  f64 scale =
      f64(mean) * count / std::accumulate(lengths.begin(), lengths.end(), 0.0);
  std::vector<u32> whole(count);
  for (u32 i = 0; i < count; ++i)
    whole[i] = u32(std::max(1.0, std::round(lengths[i] * scale)));
  return whole;
}

using Clock = std::chrono::steady_clock;

f64 secondsBetween(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<f64>(to - from).count();
}

/// What the requests' sinks share.
class Driver {
public:
  Driver(ServingEngine &engine, const std::vector<LoadRequest> &load,
         u32 concurrency, bool inGroups)
      : engine(engine), load(load), concurrency(concurrency),
        inGroups(inGroups) {}

  Result<LoadOutcome> run(Progress &progress);

private:
  struct Sink;

  /// Sends what may be sent now; with the lock.
  void send();
  void onEnd(const Sink &sink, const End &end);

  ServingEngine &engine;
  const std::vector<LoadRequest> &load;
  u32 concurrency;
  bool inGroups;

  std::mutex mutex;
  std::condition_variable changed;
  u32 sent = 0, done = 0;
  std::vector<RequestId> ids;
  std::optional<Error> error;
  LoadOutcome outcome;
};

struct Driver::Sink : RequestSink {
  explicit Sink(Driver &driver) : driver(driver) {}

  bool onToken(u32, const GeneratedToken &) override {
    Clock::time_point now = Clock::now();
    gaps.push_back(secondsBetween(last, now));
    last = now;
    return true;
  }

  void onEnd(u32, const End &end, const RequestFacts &) override {
    driver.onEnd(*this, end);
  }

  Driver &driver;
  Clock::time_point last = Clock::now();
  std::vector<f64> gaps; ///< Before each token.
};

void Driver::send() {
  while (sent < load.size() && sent - done < concurrency && !error) {
    // A group is full, and waits for its last.
    if (inGroups && sent % concurrency == 0 && sent != done)
      return;
    const LoadRequest &request = load[sent++];
    auto queued =
        engine.submit({.prompt = request.prompt, .maxTokens = request.answer},
                      std::make_shared<Sink>(*this));
    if (!queued) {
      error = queued.error();
      ++done;
    } else {
      ids.push_back(*queued);
    }
  }
}

void Driver::onEnd(const Sink &sink, const End &end) {
  std::lock_guard lock(mutex);
  ++done;
  if (end.error)
    error = *end.error;
  outcome.answered += sink.gaps.size();
  if (!sink.gaps.empty()) {
    outcome.firstTokens.push_back(sink.gaps.front());
    outcome.betweenTokens.insert(outcome.betweenTokens.end(),
                                 sink.gaps.begin() + 1, sink.gaps.end());
  }
  send();
  changed.notify_one();
}

Result<LoadOutcome> Driver::run(Progress &progress) {
  Clock::time_point start = Clock::now();
  std::unique_lock lock(mutex);
  send();
  while (done < sent) {
    changed.wait_for(lock, std::chrono::milliseconds(100));
    progress.update("requests", done, load.size());
    if (wasInterrupted() && !error) {
      error = Error{ErrorKind::Environment, "interrupted"};
      for (RequestId id : ids)
        engine.cancel(id);
    }
  }
  outcome.seconds = secondsBetween(start, Clock::now());
  lock.unlock();
  if (error)
    return tl::unexpected(*error);
  std::ranges::sort(outcome.firstTokens);
  std::ranges::sort(outcome.betweenTokens);
  // The last token is told before its step is counted.
  do
    outcome.stats = engine.stats().scheduler;
  while (outcome.stats.running + outcome.stats.waiting != 0);
  return std::move(outcome);
}

} // namespace

std::vector<LoadRequest> tools::makeLoad(const LoadOptions &options,
                                         u32 vocab) {
  std::mt19937_64 bits(options.seed);
  std::vector<u32> prompts =
      drawLengths(options.requests, options.meanPrompt, bits);
  std::vector<u32> answers =
      drawLengths(options.requests, options.meanAnswer, bits);
  std::vector<LoadRequest> load(options.requests);
  for (u32 i = 0; i < options.requests; ++i) {
    load[i].answer = answers[i];
    for (u32 at = 0; at < options.sharedPrompt + prompts[i]; ++at)
      load[i].prompt.push_back(
          anyToken(at < options.sharedPrompt ? 0 : i + 1, at, vocab));
  }
  return load;
}

std::vector<LoadRequest> tools::padToGroups(std::vector<LoadRequest> load,
                                            u32 size) {
  for (size_t first = 0; first < load.size(); first += size) {
    size_t last = std::min(first + size, load.size());
    size_t prompt = 0;
    u32 answer = 0;
    for (size_t i = first; i < last; ++i) {
      prompt = std::max(prompt, load[i].prompt.size());
      answer = std::max(answer, load[i].answer);
    }
    for (size_t i = first; i < last; ++i) {
      load[i].prompt.insert(load[i].prompt.begin(),
                            prompt - load[i].prompt.size(), 0);
      load[i].answer = answer;
    }
  }
  return load;
}

Result<LoadOutcome> tools::serveLoad(ServingEngine &engine,
                                     const std::vector<LoadRequest> &load,
                                     u32 concurrency, bool inGroups,
                                     Progress &progress) {
  return Driver(engine, load, concurrency, inGroups).run(progress);
}

#include "runtime/serve/Replay.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <ranges>

namespace lathe::runtime::serve {

namespace {

/// True if an answer ended by drawing a stop token, which it does not hold. A
/// stop string ends an answer after one of its tokens.
bool endsByStopToken(const RecordedAnswer &answer) {
  return answer.finish == EndReason::Stop &&
         (answer.stopStrings == 0 || answer.answer.empty());
}

/// Gathers what becomes of the answers.
class Results {
public:
  /// Waits until fewer than `most` answers are being made; at most so long.
  bool waitForRoom(u64 most, std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, time, [&] { return running < most; });
  }

  void begin() {
    std::lock_guard lock(mutex);
    ++running;
  }

  /// Takes back a begin() that came to nothing.
  void withdraw() {
    std::lock_guard lock(mutex);
    --running;
  }

  void end(u64 equalTokens, std::optional<ReplayDifference> difference) {
    std::lock_guard lock(mutex);
    --running;
    ++report.answers;
    report.tokens += equalTokens;
    if (difference) {
      ++report.different;
      if (!report.first || difference->line < report.first->line)
        report.first = std::move(difference);
    }
    changed.notify_one();
  }

  u64 done() {
    std::lock_guard lock(mutex);
    return report.answers;
  }

  ReplayReport take() {
    std::lock_guard lock(mutex);
    return report;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  u64 running = 0;
  ReplayReport report;
};

/// Compares one answer as it is made.
class Comparison : public RequestSink {
public:
  Comparison(const Recording::Entry &entry, std::shared_ptr<Results> results)
      : line(entry.line), recorded(entry.answer), results(std::move(results)) {}

  bool onToken(u32 /*branch*/, const GeneratedToken &token) override {
    if (equal < recorded.answer.size() &&
        recorded.answer[equal] == token.token) {
      ++equal;
      return true;
    }
    differ(token.token);
    return false;
  }

  void onEnd(u32 /*branch*/, const End &end, const RequestFacts &) override {
    bool isWhole =
        equal == recorded.answer.size() &&
        (!endsByStopToken(recorded) || end.reason == EndReason::Stop);
    if (end.reason == EndReason::Cancelled)
      difference.reset(); // The replay itself was interrupted.
    else if (!difference && (!isWhole || end.error))
      differ(std::nullopt);
    if (difference && end.error)
      difference->error = end.error->message;
    results->end(equal, std::move(difference));
  }

private:
  void differ(std::optional<i32> got) {
    difference = {.line = line,
                  .callId = recorded.callId,
                  .promptIndex = recorded.promptIndex,
                  .branch = recorded.branch,
                  .index = equal,
                  .position = u32(recorded.prompt.size()) + equal,
                  .expected = std::nullopt,
                  .got = got,
                  .error = {}};
    if (equal < recorded.answer.size())
      difference->expected = recorded.answer[equal];
  }

  u64 line;
  const RecordedAnswer &recorded;
  std::shared_ptr<Results> results;
  u32 equal = 0; ///< Tokens so far.
  std::optional<ReplayDifference> difference;
};

Request requestOf(const RecordedAnswer &answer) {
  Request request{.prompt = answer.prompt,
                  .sampling = answer.sampling,
                  .maxTokens = u32(answer.answer.size()),
                  .stopTokens = answer.stopTokens,
                  .cacheSalt = answer.saltDigest};
  request.sampling.seed += answer.branch;
  if (endsByStopToken(answer))
    ++request.maxTokens;
  return request;
}

} // namespace

Result<void> checkRecordedWith(const Recording &recording,
                               const std::string &engineHash,
                               const std::string &target) {
  for (const auto &[line, answer] : recording.answers) {
    if (answer.engineHash != engineHash)
      return fail(
          ErrorKind::Unsupported,
          "line {} was recorded with engine {:.16}, and this is {:.16}; "
          "name the one that recorded it with --engine, and the "
          "options that it was served with",
          line, answer.engineHash, engineHash);
    if (answer.target != target)
      return fail(ErrorKind::Unsupported,
                  "line {} was recorded on {}, and this is {}; --isa chooses "
                  "another, if the CPU has it",
                  line, answer.target, target);
  }
  return {};
}

u32 contextFor(const Recording &recording) {
  u64 most = 0;
  for (const auto &[line, answer] : recording.answers)
    most = std::max(most, u64(answer.prompt.size()) + answer.answer.size() + 1);
  return u32(std::min<u64>(most, ~0u));
}

Result<ReplayReport> replay(ServingEngine &engine, const Recording &recording,
                            const ReplayProgress &progress) {
  constexpr std::chrono::milliseconds interval{100};
  auto results = std::make_shared<Results>();
  u64 unchecked = 0;
  std::vector<RequestId> ids;
  auto isInterrupted = [&] {
    return progress.interrupt && *progress.interrupt;
  };
  auto waitFor = [&](u64 most) {
    bool hasRoom = false;
    while (!hasRoom && !isInterrupted()) {
      hasRoom = results->waitForRoom(most, interval);
      if (progress.update)
        progress.update(results->done(), recording.answers.size() - unchecked);
    }
  };
  // More than can be evaluated together, so that its queue never runs dry.
  constexpr u64 mostAtATime = 256;
  std::optional<Error> refused;
  for (const auto &entry : recording.answers | std::views::reverse) {
    const RecordedAnswer &answer = entry.answer;
    if (answer.answer.empty() && !endsByStopToken(answer)) {
      ++unchecked;
      continue;
    }
    waitFor(mostAtATime);
    if (isInterrupted())
      break;
    results->begin();
    auto id = engine.submit(requestOf(answer),
                            std::make_shared<Comparison>(entry, results));
    if (!id) {
      results->withdraw();
      refused = failFrom(id, fmt::format("line {}", entry.line)).value();
      break;
    }
    ids.push_back(*id);
  }
  if (!refused)
    waitFor(1);
  bool wasInterrupted = isInterrupted();
  if (refused || wasInterrupted) {
    for (RequestId id : ids)
      engine.cancel(id);
    // Its sinks look into the recording.
    while (!results->waitForRoom(1, interval))
      ;
  }
  if (refused)
    return tl::unexpected<Error>(std::move(*refused));
  ReplayReport report = results->take();
  report.unchecked = unchecked;
  report.wasInterrupted = wasInterrupted;
  return report;
}

} // namespace lathe::runtime::serve

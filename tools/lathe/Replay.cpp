/// \file
/// lathe replay: makes the answers of a recording again, bit for bit.

#include "runtime/serve/Replay.h"
#include "runtime/serve/Fingerprint.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Checks.h"
#include "tools/lathe/Command.h"
#include "tools/lathe/Interrupt.h"
#include "tools/lathe/OpenModel.h"
#include "tools/lathe/Terminal.h"

#include <chrono>
#include <memory>
#include <spdlog/spdlog.h>

using namespace lathe;
using namespace lathe::tools;
using runtime::displayPath;
using runtime::serve::Recording;
using runtime::serve::ReplayDifference;
using runtime::serve::ReplayReport;

namespace {

struct Options {
  std::string file;
  std::string model; ///< Empty: the one that the recording names.
  ModelOptions open;
  u32 threads = 0;
  u32 batch = 16;
  bool json = false;
};

/// What was run, for the report.
struct Setting {
  std::string engineHash;
  std::string target;
  u32 threads;
  u32 batch;
  f64 seconds;
  std::vector<u64> tornLines;
};

nlohmann::ordered_json toJson(const ReplayDifference &difference) {
  auto idOrNull = [](std::optional<i32> id) {
    return id ? nlohmann::ordered_json(*id) : nlohmann::ordered_json();
  };
  nlohmann::ordered_json json = {
      {"line", difference.line},
      {"request_id", difference.callId},
      {"prompt_index", difference.promptIndex},
      {"branch", difference.branch},
      {"index", difference.index},
      {"position", difference.position},
      {"expected", idOrNull(difference.expected)},
      {"got", idOrNull(difference.got)},
  };
  if (!difference.error.empty())
    json["error"] = difference.error;
  return json;
}

void printReport(const ReplayReport &report, const Setting &setting) {
  printOut("{} of {} {}; engine {:.16} on {}, {} at a time, {}, {:.1f} s\n",
           counted(report.tokens, "token"), counted(report.answers, "answer"),
           report.different == 0 ? "are the same" : "were compared",
           setting.engineHash, setting.target, setting.batch,
           counted(setting.threads, "thread"), setting.seconds);
  if (report.unchecked != 0)
    printOut("{} ended before the first token: nothing to compare\n",
             counted(report.unchecked, "answer"));
}

/// "expected token 12, got the end of the answer"
std::string describe(const ReplayDifference &difference) {
  auto name = [](std::optional<i32> id) {
    return id ? fmt::format("token {}", *id)
              : std::string("the end of the answer");
  };
  if (!difference.error.empty())
    return fmt::format("expected {}, got an error: {}",
                       name(difference.expected), difference.error);
  return fmt::format("expected {}, got {}", name(difference.expected),
                     name(difference.got));
}

void printReportJson(const ReplayReport &report, const Setting &setting) {
  nlohmann::ordered_json json = {
      {"answers", report.answers},
      {"unchecked", report.unchecked},
      {"tokens", report.tokens},
      {"different", report.different},
      {"first_difference",
       report.first ? toJson(*report.first) : nlohmann::ordered_json()},
      {"torn_lines", setting.tornLines},
      {"engine", setting.engineHash},
      {"target", setting.target},
      {"threads", setting.threads},
      {"batch", setting.batch},
      {"seconds", setting.seconds},
  };
  printJson(json);
}

using EnginePtr = std::shared_ptr<const runtime::LoadedEngine>;

/// Opens a model and checks that it is what the recording was made with.
Result<EnginePtr> openAndCheck(const Recording &recording,
                               const std::string &model,
                               const ModelOptions &open) {
  auto engine = loadModel(model, open);
  if (!engine)
    return engine;
  auto isSame = runtime::serve::checkRecordedWith(
      recording, runtime::serve::engineHash((*engine)->engine()),
      std::string((*engine)->targetName()));
  if (!isSame)
    return failFrom(isSame);
  return engine;
}

Result<EnginePtr> openRecorded(const Options &options,
                               const Recording &recording) {
  const auto &recorded = recording.answers.front().answer;
  const std::string &model =
      options.model.empty() ? recorded.model : options.model;
  auto engine = openAndCheck(recording, model, options.open);
  if (engine || !options.open.isa.empty())
    return engine;
  // It may have been served with --isa, for which models have other engines.
  ModelOptions open = options.open;
  open.isa = recorded.target;
  if (auto other = openAndCheck(recording, model, open))
    return other;
  return engine;
}

Result<int> replay(const Options &options) {
  warnOfThreads(options.threads);
  auto recording = runtime::serve::readRecording(options.file);
  if (!recording)
    return failFrom(recording);
  for (u64 line : recording->tornLines)
    spdlog::warn("{}, line {}: cut off, by a crash or a full disk; ignored",
                 displayPath(options.file), line);
  auto engine = openRecorded(options, *recording);
  if (!engine)
    return failFrom(engine, displayPath(options.file));
  auto serving = runtime::ServingEngine::create(
      *engine, {.threads = options.threads,
                .context = runtime::serve::contextFor(*recording),
                .maxRunning = options.batch});
  if (!serving)
    return failFrom(serving);

  const std::atomic<bool> *interrupt = catchInterrupts();
  auto start = std::chrono::steady_clock::now();
  Progress progress;
  auto report = runtime::serve::replay(
      **serving, *recording,
      {.update = [&](u64 done,
                     u64 total) { progress.update("replaying", done, total); },
       .interrupt = interrupt});
  progress.clear();
  if (!report)
    return failFrom(report, displayPath(options.file));
  if (report->wasInterrupted)
    return interruptedStatus();
  Setting setting{.engineHash = runtime::serve::engineHash((*engine)->engine()),
                  .target = std::string((*engine)->targetName()),
                  .threads = (*serving)->threads(),
                  .batch = options.batch,
                  .seconds = std::chrono::duration<f64>(
                                 std::chrono::steady_clock::now() - start)
                                 .count(),
                  .tornLines = recording->tornLines};
  options.json ? printReportJson(*report, setting)
               : printReport(*report, setting);
  if (const auto &first = report->first)
    return fail(ErrorKind::Internal,
                "{}, line {}: request {}, prompt {}, answer {} differs at "
                "token {} (position {}): {}; {} in all",
                displayPath(options.file), first->line, first->callId,
                first->promptIndex, first->branch, first->index,
                first->position, describe(*first),
                counted(report->different, "answer"));
  return exitDone;
}

} // namespace

void tools::addReplay(const CommandLine &line) {
  auto options = std::make_shared<Options>();
  CLI::App *command =
      line.add("replay", "Make the answers of a recording again, bit for bit",
               "  lathe serve smollm2 --record answers.jsonl\n"
               "  lathe replay answers.jsonl\n"
               "  lathe replay answers.jsonl --batch 3 -t 1 --json");
  command->add_option("FILE", options->file, "A file of serve --record")
      ->required();
  command->add_option("--engine", options->model,
                      "The engine or model that it was recorded with, if it "
                      "has moved");
  command
      ->add_option("--batch", options->batch,
                   "Most answers that are evaluated together")
      ->check(wholeNumber(1, 1024))
      ->capture_default_str();
  addThreads(*command, options->threads);
  options->open.addTo(*command);
  command->add_flag("--json", options->json, "Print the result as JSON");
  line.onGiven(command, [options] { return replay(*options); });
}

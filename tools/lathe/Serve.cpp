/// \file
/// lathe serve: a model behind an API that OpenAI's and Ollama's clients speak.

#include "runtime/schedule/ServingEngine.h"
#include "runtime/serve/AccessLog.h"
#include "runtime/serve/AllRoutes.h"
#include "runtime/serve/Api.h"
#include "runtime/serve/Fingerprint.h"
#include "runtime/serve/Metrics.h"
#include "runtime/serve/ObserverList.h"
#include "runtime/serve/Recorder.h"
#include "runtime/serve/http/HttpServer.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Checks.h"
#include "tools/lathe/DraftOptions.h"
#include "tools/lathe/Interrupt.h"
#include "tools/lathe/OpenModel.h"
#include "tools/lathe/Terminal.h"

#include <chrono>
#include <filesystem>
#include <future>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

using namespace lathe;
using namespace lathe::tools;
using namespace lathe::runtime;

namespace {

struct Options {
  std::string model;
  std::string name;
  std::string keyFile;
  http::HttpOptions http = {.port = 8080};
  ServingOptions serving = {.names = {.requests = "--requests"}};
  u32 requestSeconds = 0;
  u32 drainSeconds = 5;
  bool withoutPrefixCache = false;
  std::string record;
  bool isTextRecorded = false;
  bool isLogJson = false;
  DraftOptions drafts;
  ModelOptions open;
};

/// One key per line; empty lines and those that begin with # are none.
Result<std::vector<std::string>> readKeys(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file)
    return failFrom(file);
  std::error_code error;
  auto rights = std::filesystem::status(path, error).permissions();
  if ((rights & std::filesystem::perms::others_read) !=
      std::filesystem::perms::none)
    spdlog::warn("everybody on this machine can read {}; chmod 600 helps",
                 displayPath(path));
  std::vector<std::string> keys;
  std::string_view left(reinterpret_cast<const char *>(file->bytes().data()),
                        file->size());
  constexpr std::string_view blanks = " \t\r";
  while (!left.empty()) {
    std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    line = line.substr(0, line.find_last_not_of(blanks) + 1);
    if (!line.empty() && line[0] != '#')
      keys.emplace_back(line);
  }
  if (keys.empty())
    return fail(ErrorKind::InvalidInput, "{} holds no key: one per line",
                displayPath(path));
  return keys;
}

/// As clients call the model: the file's name without folder and ending.
std::string nameOf(const Options &options) {
  return options.name.empty()
             ? std::filesystem::path(options.model).stem().string()
             : options.name;
}

struct Loaded {
  std::shared_ptr<const TextModel> model;
  std::unique_ptr<ServingEngine> engine;
};

Result<Loaded> load(const Options &options) {
  auto opened = openEngine(options.model, options.open);
  if (!opened)
    return failFrom(opened);
  auto tokenizerMade = std::async(std::launch::async,
                                  [&opened] { return tokenizerOf(**opened); });
  auto engine = loadCode(*opened, options.open);
  auto tokenizer = tokenizerMade.get();
  if (!engine)
    return failFrom(engine);
  if (!tokenizer)
    return failFrom(tokenizer);
  auto drafts = options.drafts.load(options.open);
  if (!drafts)
    return failFrom(drafts);
  ServingOptions wanted = options.serving;
  wanted.drafts = std::move(*drafts);
  auto serving = ServingEngine::create(*engine, wanted);
  if (!serving)
    return failFrom(serving);
  return Loaded{TextModel::create(*engine, std::move(*tokenizer)),
                std::move(*serving)};
}

/// Null if nothing is recorded.
Result<std::shared_ptr<serve::Recorder>>
openRecorder(const Options &options, const LoadedEngine &engine) {
  if (options.record.empty())
    return nullptr;
  return serve::Recorder::open(
      {.path = options.record,
       .text = options.isTextRecorded,
       .model = options.model,
       .engineHash = serve::engineHash(engine.engine()),
       .target = std::string(engine.targetName()),
       .warn = [](const std::string &message) {
         spdlog::warn("{}", message);
       }});
}

/// Where lines about requests go. As JSON, all other messages become JSON, too.
std::shared_ptr<spdlog::logger> accessLogger(bool isJson) {
  if (!isJson)
    return spdlog::default_logger();
  setUpJsonMessages();
  auto logger = std::make_shared<spdlog::logger>(
      "access", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(spdlog::level::debug);
  logger->set_pattern("%v");
  return logger;
}

void announce(const ServingEngine &engine, const std::string &name,
              const http::HttpServer &server) {
  const MemoryPlan &memory = engine.memory();
  for (const std::string &notice : {memory.notice, engine.warning()})
    if (!notice.empty())
      spdlog::warn("{}", notice);
  spdlog::info("{} with {}, {} answers of up to {} tokens at a time, KV cache "
               "of {} tokens ({})",
               name, counted(engine.threads(), "thread"), memory.requests,
               engine.context(), memory.kvTokens(),
               formatBytes(memory.kvBytes));
  spdlog::info("serving on {}", server.url());
}

Result<int> runServer(Options options) {
  warnOfThreads(options.serving.threads);
  options.serving.prefixCache = !options.withoutPrefixCache;
  if (!options.keyFile.empty()) {
    auto keys = readKeys(options.keyFile);
    if (!keys)
      return failFrom(keys);
    options.http.keys = std::move(*keys);
  }
  auto log = std::make_shared<serve::AccessLog>(accessLogger(options.isLogJson),
                                                options.isLogJson);
  options.http.log = [log](const http::AccessRecord &record) {
    log->log(record);
  };
  // Before weights are read: a taken port is told at once.
  auto server = http::HttpServer::listen(options.http);
  if (!server)
    return failFrom(server);
  catchInterrupts();
  auto loaded = load(options);
  if (!loaded)
    return failFrom(loaded);
  std::string name = nameOf(options);
  auto recorder = openRecorder(options, loaded->engine->engine());
  if (!recorder)
    return failFrom(recorder);
  ServingEngine &engine = *loaded->engine;
  auto metrics = std::make_shared<serve::Metrics>(
      name, [&engine] { return engine.stats(); });
  std::shared_ptr<serve::ServedModel> served(new serve::ServedModel{
      .model = loaded->model,
      .engine = engine,
      .name = name,
      .fingerprint = serve::systemFingerprint(engine.engine()),
      .created = std::chrono::duration_cast<std::chrono::seconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count(),
      .observer = serve::observeAll({metrics, *recorder, log}),
      .requestTime = std::chrono::seconds(options.requestSeconds)});
  (*server)->serve(serve::allRoutes(served, metrics));
  announce(engine, name, **server);

  waitForInterrupt();
  spdlog::info("finishing what is in progress");
  served->isDraining = true;
  if (!(*server)->drain(std::chrono::seconds(options.drainSeconds))) {
    // Who is still being answered is told that the answer ends here.
    engine.stop();
    (*server)->drain(std::chrono::seconds(1));
  }
  // Its threads use the engine.
  server->reset();
  return exitDone;
}

} // namespace

void tools::addServe(const CommandLine &line) {
  auto options = std::make_shared<Options>();
  CLI::App *command = line.add(
      "serve", "Serve a model to OpenAI's and Ollama's clients",
      "  lathe serve smollm2\n"
      "  lathe serve model.gguf --port 9000 --memory 8G --requests 32\n"
      "  curl localhost:8080/v1/chat/completions -d "
      "'{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'");
  command
      ->add_option("MODEL", options->model,
                   "A GGUF model, an engine, or the name of a local one")
      ->required();
  command
      ->add_option("--host", options->http.host,
                   "Address to listen on; 0.0.0.0: all of this machine's")
      ->capture_default_str();
  command->add_option("--port", options->http.port, "Port to listen on; 0: any")
      ->capture_default_str();
  command->add_option("--api-key-file", options->keyFile,
                      "Let in only who has a key of this file, one per line");
  command->add_option("--name", options->name,
                      "What clients call the model (default: the file's name)");
  addThreads(*command, options->serving.threads);
  command
      ->add_option("--memory", options->serving.memoryBytes,
                   "Most bytes of weights, buffers and KV cache, such as 8G "
                   "(default: what is available)")
      ->transform(byteCount());
  command
      ->add_option("--context", options->serving.context,
                   "Most tokens of prompt and answer (default: the model's)")
      ->check(wholeNumber(1, contextMax));
  command
      ->add_option("--requests", options->serving.maxRunning,
                   "Most answers that are made together")
      ->check(wholeNumber(1, MemoryPlan::mostRequests))
      ->capture_default_str();
  command
      ->add_option("--queue", options->serving.maxWaiting,
                   "Most requests that wait besides; others get status 429")
      ->check(wholeNumber(0, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--chunk", options->serving.stepRows,
                   "Rows of a step; the answers do not depend on it")
      ->check(wholeNumber(1, chunkMax))
      ->capture_default_str();
  command->add_flag("--no-prefix-cache", options->withoutPrefixCache,
                    "Evaluate prompts that start alike each anew");
  command
      ->add_option("--request-timeout", options->requestSeconds,
                   "Seconds after which an answer ends; 0: none")
      ->check(wholeNumber(0, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--drain", options->drainSeconds,
                   "Seconds that answers get to end after SIGTERM")
      ->check(wholeNumber(0, 1 << 20))
      ->capture_default_str();
  CLI::Option *record =
      command->add_option("--record", options->record,
                          "Append every answer to this file, for lathe replay");
  command
      ->add_flag("--record-text", options->isTextRecorded,
                 "Record prompts and answers as text, too")
      ->needs(record);
  command->add_flag("--log-json", options->isLogJson,
                    "Log in JSON, an object a line");
  options->drafts.addTo(*command);
  options->open.addTo(*command);
  line.onGiven(command, [options] { return runServer(*options); });
}

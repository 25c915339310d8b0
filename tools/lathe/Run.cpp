/// \file
/// lathe run: a model answers a prompt or chats.

#include "runtime/device/Memory.h"
#include "runtime/support/MappedFile.h"
#include "runtime/support/Quote.h"
#include "runtime/text/StopMatcher.h"
#include "tools/lathe/Checks.h"
#include "tools/lathe/Generation.h"
#include "tools/lathe/Interrupt.h"
#include "tools/lathe/Places.h"
#include "tools/lathe/Terminal.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <spdlog/spdlog.h>
#include <unistd.h>

using namespace lathe;
using namespace lathe::tools;
using runtime::FinishReason;

namespace {

/// Longest prompt read from a file or standard input.
constexpr size_t promptBytesMax = size_t{64} << 20;

Result<std::string> readInput(int descriptor, const std::string &name) {
  std::string text;
  std::vector<char> buffer(size_t{1} << 16);
  for (;;) {
    ssize_t got = read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR && !wasInterrupted())
      continue;
    if (got < 0)
      return fail(ErrorKind::Environment, "cannot read {}: {}", name,
                  std::strerror(errno));
    if (got == 0)
      return text;
    text.append(buffer.data(), size_t(got));
    if (text.size() > promptBytesMax)
      return fail(ErrorKind::InvalidInput, "{} is longer than {}", name,
                  runtime::formatBytes(promptBytesMax));
  }
}

Result<std::string> readPromptFile(const std::string &path) {
  if (path == "-")
    return readInput(STDIN_FILENO, "standard input");
  auto file = runtime::MappedFile::open(path);
  if (!file)
    return failFrom(file);
  if (file->size() > promptBytesMax)
    return fail(ErrorKind::InvalidInput, "{} is longer than {}",
                runtime::displayPath(path),
                runtime::formatBytes(promptBytesMax));
  return std::string(file->bytes().begin(), file->bytes().end());
}

Result<std::vector<i32>> encodePrompt(const Runner &runner,
                                      const RunOptions &options,
                                      const std::string &prompt) {
  if (options.raw || !runner.model->hasChatTemplate()) {
    if (!options.system.empty())
      spdlog::warn("--system has no effect: the prompt goes to the model as it "
                   "is");
    return runner.model->tokenizer().encode(
        prompt, {.addSpecial = true, .parseSpecial = options.parseSpecial});
  }
  if (!runtime::isUtf8(prompt))
    return fail(ErrorKind::InvalidInput,
                "the prompt is not valid UTF-8 (with --raw any bytes may be "
                "given)");
  if (auto ready = runner.model->checkChat(); !ready)
    return failFrom(ready, "use --raw");
  auto messages = nlohmann::ordered_json::array();
  if (!options.system.empty())
    messages.push_back({{"role", "system"}, {"content", options.system}});
  messages.push_back({{"role", "user"}, {"content", prompt}});
  return runner.model->encodeChat(messages);
}

std::string_view nameOf(FinishReason reason) {
  switch (reason) {
  case FinishReason::Stop:
    return "stop";
  case FinishReason::Length:
    return "length";
  case FinishReason::Cancelled:
    return "cancelled";
  }
  return "";
}

void printAnswerJson(const Runner &runner,
                     const runtime::TextGeneration &answer) {
  const runtime::Generation &made = answer.generation;
  printJson({{"text", answer.text},
             {"tokens", made.tokens},
             {"prompt_tokens", made.promptTokens},
             {"completion_tokens", made.tokens.size()},
             {"finish_reason", nameOf(made.reason)},
             {"load_ms", runner.loadSeconds * 1e3},
             {"prefill_tokens_per_second", made.prefillTokensPerSecond()},
             {"decode_tokens_per_second", made.decodeTokensPerSecond()},
             {"peak_rss_bytes", runtime::peakResidentBytes()}});
}

Result<int> answerPrompt(Runner &runner, const RunOptions &options,
                         const std::string &prompt) {
  auto ids = encodePrompt(runner, options, prompt);
  if (!ids)
    return failFrom(ids);
  auto made = answer(runner, options, *ids, /*show=*/!options.json);
  if (!made)
    return failFrom(made);
  if (options.json) {
    printAnswerJson(runner, *made);
  } else {
    if (!made->text.ends_with('\n'))
      write("\n");
    // The text is out before the figures, also when both go to one file.
    if (flushOutput())
      fmt::print(stderr, "{}\n", figures(runner, made->generation));
  }
  return made->generation.reason == FinishReason::Cancelled
             ? interruptedStatus()
             : exitDone;
}

/// Without a model: what there is. True if the user wants to chat with the
/// model that is offered.
bool listModels() {
  std::vector<LocalModel> models = localModels();
  if (models.empty())
    printOut("no models here or in {}\n",
             runtime::displayPath(modelsDirectory()));
  else
    for (const LocalModel &model : models)
      printOut("{:<40} {:>12}  {}\n", runtime::displayPath(model.name),
               runtime::formatBytes(model.bytes),
               runtime::displayPath(model.path));
  bool hasDefault =
      std::any_of(models.begin(), models.end(), [](const LocalModel &model) {
        return model.name == "smollm2";
      });
  if (!hasDefault) {
    printOut("\ntools/quickstart (in Lathe's source tree) fetches smollm2, a "
             "small model to try:\n  tools/quickstart\n");
    return false;
  }
  if (!isTerminal(STDIN_FILENO) || !isTerminal(STDOUT_FILENO)) {
    printOut("\nto try one:\n  lathe run smollm2 -p \"What is a lathe?\"\n");
    return false;
  }
  printOut("\nchat with smollm2? [Y/n] ");
  flushOutput();
  std::string line;
  return std::getline(std::cin, line) &&
         (line.empty() || line[0] == 'y' || line[0] == 'Y');
}

Result<int> run(RunOptions options) {
  bool hasPrompt = options.prompt || !options.promptFile.empty();
  if (options.model.empty()) {
    if (hasPrompt)
      throw UsageError("MODEL is required (lathe run alone lists the models "
                       "here)");
    if (!listModels())
      return exitDone;
    options.model = "smollm2";
  }
  if (options.prompt && !options.promptFile.empty())
    throw UsageError("-p and -f exclude each other");
  if (auto read = readBiases(options.biases, options.sampling); !read)
    throw UsageError(read.error().message);
  if (auto ok = runtime::Sampler::create(options.sampling, ~0u); !ok)
    throw UsageError(ok.error().message);
  if (auto ok = runtime::StopMatcher::create(options.stops); !ok)
    throw UsageError("--stop: " + ok.error().message);
  if (!runtime::isUtf8(options.system))
    throw UsageError("--system is not valid UTF-8");
  warnOfThreads(options.session.threads);
  bool interactive = !hasPrompt && isTerminal(STDIN_FILENO);
  if (interactive && options.json)
    throw UsageError("--json needs a prompt (-p, -f or standard input)");

  std::string prompt;
  if (options.prompt) {
    prompt = *options.prompt;
  } else if (!interactive) {
    auto text =
        readPromptFile(options.promptFile.empty() ? "-" : options.promptFile);
    if (!text)
      return failFrom(text);
    prompt = std::move(*text);
  }
  auto runner = loadRunner(options);
  if (!runner)
    return failFrom(runner);
  return interactive ? chat(*runner, options)
                     : answerPrompt(*runner, options, prompt);
}

void addSampling(CLI::App &command, RunOptions &options) {
  runtime::SamplerOptions &sampling = options.sampling;
  const std::string group = "Sampling";
  auto add = [&](const char *name, auto &value, const char *text) {
    return command.add_option(name, value, text)
        ->capture_default_str()
        ->group(group);
  };
  add("--temperature", sampling.temperature,
      "Randomness; 0 always takes the likeliest token");
  add("--top-k", sampling.topK, "Only the k likeliest tokens; 0: off");
  add("--top-p", sampling.topP,
      "Only the likeliest tokens that make up this share; 1: off");
  add("--min-p", sampling.minP,
      "Only tokens this share as likely as the likeliest; 0: off");
  add("--repeat-penalty", sampling.repetitionPenalty,
      "Makes recent tokens less likely; 1: off");
  add("--presence-penalty", sampling.presencePenalty,
      "Subtracted from the logits of recent tokens");
  add("--frequency-penalty", sampling.frequencyPenalty,
      "The same, for each time they occurred");
  add("--repeat-last-n", sampling.penaltyWindow,
      "How many tokens are recent; 0: all");
  add("--seed", sampling.seed, "The same seed gives the same answer")
      ->check(wholeNumber(0, ~u64(0)));
  command
      .add_option("--logit-bias", options.biases,
                  "ID=BIAS, added to a token's logit; may be repeated")
      ->allow_extra_args(false)
      ->group(group);
}

} // namespace

void tools::addRun(const CommandLine &line) {
  auto options = std::make_shared<RunOptions>();
  CLI::App *command =
      line.add("run", "Let a model answer a prompt, or chat with it",
               "  lathe run smollm2 -p \"What is a lathe?\"\n"
               "  lathe run model.gguf            chat\n"
               "  lathe run model.lathe --raw -p \"def fib(n):\" -n 64 --json");
  command
      ->add_option("MODEL", options->model,
                   "A GGUF model, an engine, or the name of a local one; "
                   "without it, local models are listed")
      ->check(notEmpty());
  command->add_option("-p,--prompt", options->prompt,
                      "The prompt; without it, standard input, or a chat if "
                      "that is a terminal");
  command->add_option("-f,--file", options->promptFile,
                      "Read the prompt from this file; - is standard input");
  command->add_option("--system", options->system, "The system message");
  command
      ->add_option("-n,--max-tokens", options->maxTokens,
                   "Most tokens of an answer")
      ->capture_default_str();
  CLI::Option *raw =
      command->add_flag("--raw", options->raw,
                        "Complete the prompt as it is, without chat template");
  command
      ->add_flag("--parse-special", options->parseSpecial,
                 "With --raw: text that spells a control token becomes it")
      ->needs(raw);
  command
      ->add_option("--stop", options->stops,
                   "End the answer before this text; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--ignore-end", options->ignoreEnd,
                    "Go on after tokens that end an answer");
  addThreads(*command, options->session.threads);
  command
      ->add_option("--context", options->session.context,
                   "Most tokens of prompt and answer (default: the model's)")
      ->check(wholeNumber(1, contextMax));
  command
      ->add_option("--chunk", options->session.chunk,
                   "Rows of a prefill step; the answer does not depend on it")
      ->check(wholeNumber(1, chunkMax))
      ->capture_default_str();
  options->open.addTo(*command);
  command->add_flag("--json", options->json,
                    "Print the answer with its figures as JSON");
  addSampling(*command, *options);
  line.onGiven(command, [options] { return run(*options); });
}

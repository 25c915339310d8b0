#include "tools/lathe/Generation.h"

#include "runtime/device/Memory.h"
#include "runtime/support/Quote.h"
#include "tools/lathe/Interrupt.h"
#include "tools/lathe/Terminal.h"

#include <charconv>
#include <chrono>
#include <future>
#include <spdlog/spdlog.h>

using namespace lathe;
using namespace lathe::tools;

Result<Runner> tools::loadRunner(const RunOptions &options) {
  auto opened = openEngine(options.model, options.open);
  if (!opened)
    return failFrom(opened);
  // What compiling and hashing took is not what loading takes.
  auto start = std::chrono::steady_clock::now();
  // The tokenizer's indices take as long to build as all the rest.
  auto tokenizerMade = std::async(std::launch::async,
                                  [&opened] { return tokenizerOf(**opened); });
  auto engine = loadCode(*opened, options.open);
  auto tokenizer = tokenizerMade.get();
  if (!engine)
    return failFrom(engine);
  if (!tokenizer)
    return failFrom(tokenizer);
  auto session = runtime::Session::create(*engine, options.session);
  if (!session)
    return failFrom(session);
  if (!(*session)->notice().empty())
    spdlog::warn("{}", (*session)->notice());
  f64 seconds =
      std::chrono::duration<f64>(std::chrono::steady_clock::now() - start)
          .count();
  return Runner{
      runtime::TextModel::create(std::move(*engine), std::move(*tokenizer)),
      std::move(*session), seconds};
}

Result<runtime::TextGeneration> tools::answer(Runner &runner,
                                              const RunOptions &options,
                                              const std::vector<i32> &prompt,
                                              bool show) {
  runtime::TextOptions text;
  text.generate.sampling = options.sampling;
  text.generate.maxTokens = options.maxTokens;
  text.generate.cancel = catchInterrupts();
  text.stops = options.stops;
  text.ignoreEnd = options.ignoreEnd;
  runtime::TextVisitor visitor;
  if (show)
    visitor = [](std::string_view part) {
      write(part);
      return flushOutput();
    };
  return runtime::generateText(*runner.session, *runner.model, prompt,
                               std::move(text), visitor);
}

Result<void> tools::readBiases(const std::vector<std::string> &texts,
                               runtime::SamplerOptions &sampling) {
  for (const std::string &text : texts) {
    const char *end = text.data() + text.size();
    i32 id = 0;
    f32 bias = 0;
    auto [equals, idError] = std::from_chars(text.data(), end, id);
    bool good = idError == std::errc() && equals != end && *equals == '=';
    if (good) {
      const char *value = equals + 1 + (equals + 1 != end && equals[1] == '+');
      auto [rest, biasError] = std::from_chars(value, end, bias);
      good = biasError == std::errc() && rest == end;
    }
    if (good && id < 0)
      return fail(ErrorKind::InvalidInput,
                  "--logit-bias {}: token ids are 0 or more (lathe tokenize "
                  "shows them)",
                  runtime::quoted(text));
    if (!good)
      return fail(ErrorKind::InvalidInput,
                  "--logit-bias {}: expected ID=BIAS, such as 42=-5 or 42=-inf",
                  runtime::quoted(text));
    sampling.bias.emplace_back(id, bias);
  }
  return {};
}

std::string tools::figures(const Runner &runner,
                           const runtime::Generation &made) {
  return fmt::format(
      "load {:.0f} ms | prefill {}, {:.1f} tokens/s | decode {}, {:.1f} "
      "tokens/s | memory {}{}",
      runner.loadSeconds * 1e3, counted(made.prefillTokens, "token"),
      made.prefillTokensPerSecond(), counted(made.tokens.size(), "token"),
      made.decodeTokensPerSecond(),
      runtime::formatBytes(runtime::peakResidentBytes()),
      made.reason == runtime::FinishReason::Length ? " | cut at -n or context"
                                                   : "");
}

#include "tools/lathe/Generation.h"

#include "runtime/device/Memory.h"
#include "runtime/support/Quote.h"
#include "runtime/text/StopMatcher.h"
#include "runtime/text/StreamDecoder.h"
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
  return Runner{std::move(*engine), std::move(*tokenizer), std::move(*session),
                seconds};
}

Result<Answer> tools::answer(Runner &runner, const RunOptions &options,
                             const std::vector<i32> &prompt,
                             const TextSink &sink) {
  auto matcher = runtime::StopMatcher::create(options.stops);
  if (!matcher)
    return failFrom(matcher, "--stop");
  runtime::GenerateOptions generate;
  generate.sampling = options.sampling;
  generate.maxTokens = options.maxTokens;
  generate.cancel = catchInterrupts();
  if (!options.ignoreEnd)
    generate.stopTokens = runner.tokenizer.spec().endIds;
  for (const std::string &stop : options.stops)
    if (auto id = runner.tokenizer.findSpecial(stop))
      generate.stopTokens.push_back(*id);

  Answer result;
  runtime::StreamDecoder decoder(runner.tokenizer);
  std::string decoded;
  size_t shown = 0;
  auto show = [&] {
    if (sink && shown < result.text.size())
      sink(std::string_view(result.text).substr(shown));
    shown = result.text.size();
  };
  auto made = runtime::generate(*runner.session, prompt, generate,
                                [&](const runtime::GeneratedToken &token) {
                                  decoded.clear();
                                  decoder.push(token.token, decoded);
                                  bool ended =
                                      matcher->push(decoded, result.text);
                                  show();
                                  return !ended && outputError() == 0;
                                });
  if (!made)
    return failFrom(made);
  decoded.clear();
  decoder.flush(decoded);
  matcher->push(decoded, result.text);
  if (matcher->flush(result.text))
    made->reason = runtime::FinishReason::Stop;
  show();
  result.generation = std::move(*made);
  return result;
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
      "load {:.0f} ms | prefill {} tokens, {:.1f} tokens/s | decode {} tokens, "
      "{:.1f} tokens/s | memory {}{}",
      runner.loadSeconds * 1e3, made.prefillTokens,
      made.prefillTokensPerSecond(), made.tokens.size(),
      made.decodeTokensPerSecond(),
      runtime::formatBytes(runtime::peakResidentBytes()),
      made.reason == runtime::FinishReason::Length ? " | cut at -n or context"
                                                   : "");
}

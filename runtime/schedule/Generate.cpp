#include "runtime/schedule/Generate.h"

#include <algorithm>
#include <chrono>

namespace lathe::runtime {
namespace {

using Clock = std::chrono::steady_clock;

f64 secondsSince(Clock::time_point start) {
  return std::chrono::duration<f64>(Clock::now() - start).count();
}

} // namespace

Result<Generation> generate(Session &session, std::span<const i32> prompt,
                            const GenerateOptions &options,
                            const TokenVisitor &visitor) {
  if (prompt.empty())
    return fail(ErrorKind::InvalidInput,
                "the prompt has no tokens, not even a begin token");
  auto sampler = Sampler::create(options.sampling, session.vocab());
  if (!sampler)
    return failFrom(sampler);
  auto isCancelled = [&options] {
    return options.cancel && options.cancel->load(std::memory_order_relaxed);
  };

  Generation result;
  result.promptTokens = u32(prompt.size());
  auto start = Clock::now();
  auto evaluated = session.replaceBy(prompt, isCancelled);
  if (!evaluated)
    return failFrom(evaluated);
  result.prefillTokens = *evaluated;
  if (session.tokens().size() != prompt.size()) {
    result.prefillSeconds = secondsSince(start);
    result.reason = FinishReason::Cancelled;
    return result;
  }
  result.prefillSeconds = secondsSince(start);
  auto pick = [&]() -> Result<PickResult> {
    if (options.showLogits || sampler->hasTopP())
      return sampler->sample(session.logits(), session.tokens());
    return session.pick(sampler->argsFor(session.tokens()));
  };
  u32 most = std::min(options.maxTokens,
                      session.context() - u32(session.tokens().size()));
  while (result.tokens.size() < most) {
    if (isCancelled()) {
      result.reason = FinishReason::Cancelled;
      return result;
    }
    if (!result.tokens.empty()) {
      if (auto appended = session.append({&result.tokens.back(), 1}); !appended)
        return failFrom(appended);
      ++result.decodeSteps;
    }
    auto picked = pick();
    if (!picked)
      return failFrom(picked);
    if (result.decodeSteps == 0)
      result.prefillSeconds = secondsSince(start);
    else
      result.decodeSeconds += secondsSince(start);
    auto &stops = options.stopTokens;
    bool stop =
        std::find(stops.begin(), stops.end(), picked->token) != stops.end();
    if (!stop) {
      result.tokens.push_back(picked->token);
      stop = visitor && !visitor({picked->token, u32(session.tokens().size()),
                                  options.showLogits ? session.logits()
                                                     : std::span<const f32>()});
    }
    if (stop) {
      result.reason = FinishReason::Stop;
      return result;
    }
    start = Clock::now();
  }
  return result;
}

} // namespace lathe::runtime

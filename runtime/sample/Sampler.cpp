#include "runtime/sample/Sampler.h"

#include <algorithm>
#include <cmath>

namespace lathe::runtime {

namespace {

/// What is added to a logit for one occurrence: any number of these stays far
/// from +infinity, which would look like damaged weights.
constexpr f32 penaltyMax = 1e9f;

} // namespace

Result<Sampler> Sampler::create(SamplerOptions options, u32 vocab) {
  auto check = [](bool good, const char *name, f32 value,
                  const char *range) -> Result<void> {
    if (good)
      return {};
    return fail(ErrorKind::InvalidInput, "{} is {}; expected {}", name, value,
                range);
  };
  f32 t = options.temperature, p = options.topP, m = options.minP;
  f32 r = options.repetitionPenalty;
  for (const auto &checked :
       {check(std::isfinite(t) && t >= 0, "temperature", t,
              "0 or more, finite"),
        check(p > 0 && p <= 1, "top-p", p, "more than 0, at most 1"),
        check(m >= 0 && m < 1, "min-p", m, "0 or more, less than 1"),
        check(r >= 1e-6f && r <= 1e6f, "repetition penalty", r, "1e-6 to 1e6"),
        check(std::abs(options.presencePenalty) <= penaltyMax,
              "presence penalty", options.presencePenalty, "-1e9 to 1e9"),
        check(std::abs(options.frequencyPenalty) <= penaltyMax,
              "frequency penalty", options.frequencyPenalty, "-1e9 to 1e9")})
    if (!checked)
      return failFrom(checked);
  for (auto [token, bias] : options.bias) {
    if (token < 0 || u32(token) >= vocab)
      return fail(ErrorKind::InvalidInput,
                  "logit bias for token id {}, which is not in the vocabulary "
                  "of {}",
                  token, vocab);
    if (!(bias <= penaltyMax))
      return fail(ErrorKind::InvalidInput,
                  "logit bias of token {} is {}; expected at most 1e9, or -inf",
                  token, bias);
  }
  Sampler sampler;
  std::sort(options.bias.begin(), options.bias.end());
  sampler.settings = std::move(options);
  sampler.vocab = vocab;
  sampler.hasPenalties = r != 1 || sampler.settings.presencePenalty != 0 ||
                         sampler.settings.frequencyPenalty != 0;
  return sampler;
}

void Sampler::makeEdits(std::span<const i32> history) {
  edits.clear();
  window.clear();
  if (hasPenalties) {
    u64 count = settings.penaltyWindow == 0
                    ? history.size()
                    : std::min<u64>(history.size(), settings.penaltyWindow);
    auto tail = history.last(count);
    window.assign(tail.begin(), tail.end());
    std::sort(window.begin(), window.end());
  }
  // Merges two lists sorted by token: the window and the biases.
  size_t w = 0, b = 0;
  const auto &bias = settings.bias;
  while (w < window.size() || b < bias.size()) {
    i32 token =
        w < window.size() && (b == bias.size() || window[w] <= bias[b].first)
            ? window[w]
            : bias[b].first;
    PickEdit edit{.token = token, .addend = 0, .factor = 1};
    u32 occurrences = 0;
    for (; w < window.size() && window[w] == token; ++w)
      ++occurrences;
    if (occurrences != 0) {
      edit.factor = settings.repetitionPenalty;
      edit.addend -= settings.presencePenalty;
      edit.addend -= settings.frequencyPenalty * f32(occurrences);
    }
    for (; b < bias.size() && bias[b].first == token; ++b)
      edit.addend += bias[b].second;
    edits.push_back(edit);
  }
}

PickArgs Sampler::argsFor(std::span<const i32> history, const u32 *allowed) {
  makeEdits(history);
  return {.temperature = settings.temperature,
          .minP = settings.minP,
          .topK = settings.topK,
          .position = u32(history.size()),
          .seed = settings.seed,
          .edits = edits.data(),
          .editCount = edits.size(),
          .allowed = allowed};
}

Result<PickResult> Sampler::sample(std::span<const f32> logits,
                                   std::span<const i32> history,
                                   const u32 *allowed) {
  if (logits.size() != vocab)
    return fail(ErrorKind::Internal, "{} logits for a vocabulary of {}",
                logits.size(), vocab);
  return pickFromLogits(logits, argsFor(history, allowed), scratch,
                        settings.topP);
}

} // namespace lathe::runtime

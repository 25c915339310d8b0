/// \file
/// Sampling as a request asks for it.
#ifndef LATHE_RUNTIME_SAMPLE_SAMPLER_H
#define LATHE_RUNTIME_SAMPLE_SAMPLER_H

#include "runtime/sample/Pick.h"
#include "runtime/support/Result.h"

#include <span>
#include <utility>
#include <vector>

namespace lathe::runtime {

/// How to choose tokens. The defaults choose greedily, with everything off.
struct SamplerOptions {
  /// >= 0; 0 is greedy. Applied after the filters below.
  f32 temperature = 0;
  /// Keep the k likeliest; 0: off.
  u32 topK = 0;
  /// Keep the fewest tokens whose probabilities reach this; (0, 1], 1: off.
  f32 topP = 1;
  /// Keep what is at least this share as likely as the likeliest; [0, 1),
  /// 0: off.
  f32 minP = 0;
  /// A token seen in the window: a positive logit is divided by this, another
  /// multiplied; 1e-6 to 1e6, 1: off (Keskar et al., 2019, CTRL).
  f32 repetitionPenalty = 1;
  /// Subtracted once from the logits of tokens seen in the window; up to 1e9
  /// either way.
  f32 presencePenalty = 0;
  /// Subtracted as often as the token occurs in the window; up to 1e9 either
  /// way.
  f32 frequencyPenalty = 0;
  /// The last so many tokens of prompt and answer, for the three penalties;
  /// 0: all.
  u32 penaltyWindow = 64;
  /// Added to single logits after the penalties; at most 1e9, or -infinity to
  /// rule a token out. Entries of one token add up, in rising order of the
  /// bias.
  std::vector<std::pair<i32, f32>> bias = {};
  u64 seed = 0;
};

/// Samples tokens for one request. The token depends only on the options, the
/// logits, the tokens so far and the allowed set: never on earlier calls. One
/// thread at a time.
class Sampler {
public:
  /// Checks the options. Errors: InvalidInput, naming the option and its range.
  static Result<Sampler> create(SamplerOptions options, u32 vocab);

  /// Chooses the token that follows `history` (prompt and answer so far, ids in
  /// the vocabulary; its size is the position that keys the noise) by `logits`
  /// [vocab]: penalties, bias, `allowed` (one bit per id, or null), filters,
  /// draw, as Pick.h defines. Errors as pickFromLogits().
  Result<PickResult> sample(std::span<const f32> logits,
                            std::span<const i32> history,
                            const u32 *allowed = nullptr);

  /// What sample() picks by, but for top-p, which no PickArgs holds. Valid
  /// until the next call.
  PickArgs argsFor(std::span<const i32> history, const u32 *allowed = nullptr);

  /// Whether a token depends on more than argsFor() says.
  bool hasTopP() const { return settings.topP < 1; }

  const SamplerOptions &options() const { return settings; }

private:
  Sampler() = default;
  void makeEdits(std::span<const i32> history);

  SamplerOptions settings;
  u32 vocab = 0;
  bool hasPenalties = false;
  std::vector<i32> window;     ///< Sorted tokens of the penalty window.
  std::vector<PickEdit> edits; ///< At most one per token, ids rising.
  PickScratch scratch;
};

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SAMPLE_SAMPLER_H

#include "runtime/sample/Pick.h"
#include "kernels/sample/Edit.h"
#include "runtime/sample/LogitMath.h"
#include "runtime/sample/Noise.h"

#include <algorithm>
#include <limits>

namespace lathe::runtime {
namespace {

constexpr f32 infinity = std::numeric_limits<f32>::infinity();

/// The candidate that wins so far.
struct Best {
  f64 score = -std::numeric_limits<f64>::infinity();
  u32 token = ~0u;
  f32 logit = -infinity;

  void offer(f64 newScore, u32 newToken, f32 newLogit) {
    if (newScore > score || (newScore == score && newToken < token))
      *this = {newScore, newToken, newLogit};
  }
};

/// Candidates are all tokens with exp(logit - maximum) >= minP. Exact noise
/// takes two logarithms; a cheap bound rules most tokens out first.
Best drawFromAll(std::span<const f32> row, f32 maximum, const PickArgs &args) {
  Best best;
  // Slightly above what logit / temperature can be, whatever the rounding.
  f64 inverse = 1.0 / f64(args.temperature);
  // Well below what min-p keeps, without an exp.
  f32 floor = args.minP > 0 ? minPFloor(maximum, args.minP) : -infinity;
  for (u32 block = 0; block * u64(4) < row.size(); ++block) {
    u32 count = u32(std::min<u64>(4, row.size() - block * u64(4)));
    bool anyAbove = false;
    for (u32 j = 0; j < count; ++j)
      anyAbove |= row[block * u64(4) + j] >= floor;
    if (!anyAbove)
      continue;
    NoiseWords words = noiseWords(args.seed, args.position, block);
    for (u32 j = 0; j < count; ++j) {
      f32 logit = row[block * u64(4) + j];
      f64 bound = f64(logit) * inverse;
      bound +=
          f64(gumbelBound(words.word[j])) + 1e-9 * (bound < 0 ? -bound : bound);
      if (bound < best.score || logit == -infinity)
        continue;
      if (args.minP > 0 && logit != maximum &&
          contractExp(logit - maximum) < args.minP)
        continue;
      best.offer(f64(logit) / f64(args.temperature) + gumbel(words.word[j]),
                 block * 4 + j, logit);
    }
  }
  return best;
}

/// Orders the candidates of a row and cuts them at top-k and top-p.
void selectCandidates(std::span<const f32> row, f32 maximum, u32 topK, f32 topP,
                      std::vector<Candidate> &candidates) {
  if (topK != 0)
    selectTop(row, topK, candidates);
  if (topP >= 1)
    return;

  f64 z;
  if (topK != 0) {
    // sumOfExp() over the tokens left: the others add +0 to their lanes.
    std::vector<Candidate> byId = candidates;
    std::sort(byId.begin(), byId.end(),
              [](auto &a, auto &b) { return a.token < b.token; });
    z = 0;
    for (size_t i = 0; i < byId.size();) {
      u32 slice = byId[i].token / softmaxSlice;
      f32 s[16] = {};
      for (; i < byId.size() && byId[i].token / softmaxSlice == slice; ++i)
        s[byId[i].token % 16] += contractExp(byId[i].logit - maximum);
      for (u32 step = 8; step != 0; step /= 2)
        for (u32 lane = 0; lane < step; ++lane)
          s[lane] += s[lane + step];
      z += f64(s[0]);
    }
  } else {
    z = sumOfExp(row, maximum);
  }

  // Without top-k the prefix is nearly always short: look at a few, then at
  // ever more.
  u32 looked = topK != 0 ? u32(row.size()) : 256;
  f64 target = f64(topP) * z;
  while (true) {
    if (topK == 0)
      selectTop(row, looked, candidates);
    f64 sum = 0;
    for (size_t i = 0; i < candidates.size(); ++i) {
      sum += f64(contractExp(candidates[i].logit - maximum));
      if (sum >= target) {
        candidates.resize(i + 1);
        return;
      }
    }
    if (looked >= row.size())
      return; // rounding kept the sum below the target: all stay
    looked = u32(std::min<u64>(row.size(), u64(looked) * 16));
  }
}

} // namespace

void selectTop(std::span<const f32> row, u32 count,
               std::vector<Candidate> &candidates) {
  candidates.clear();
  if (count == 0)
    return;
  // Collect what beats the count-th best so far; prune when twice too many.
  // Ids rise, so an equal logit seen later is behind.
  u64 limit = u64(count) * 2 + 64;
  candidates.reserve(std::min<u64>(limit, row.size()));
  f32 threshold = -infinity;
  auto prune = [&] {
    auto nth = candidates.begin() + (count - 1);
    std::nth_element(candidates.begin(), nth, candidates.end());
    threshold = nth->logit;
    candidates.resize(count);
  };
  constexpr u64 blockSize = 32;
  for (u64 start = 0; start < row.size(); start += blockSize) {
    u64 n = std::min(blockSize, row.size() - start);
    u32 any = 0;
    for (u64 j = 0; j < n; ++j)
      any |= row[start + j] > threshold;
    if (!any)
      continue;
    for (u64 j = 0; j < n; ++j)
      if (row[start + j] > threshold)
        candidates.push_back({row[start + j], u32(start + j)});
    if (candidates.size() + blockSize > limit)
      prune();
  }
  if (candidates.size() > count)
    prune();
  std::sort(candidates.begin(), candidates.end());
}

Result<PickResult> pickFromLogits(std::span<const f32> row,
                                  const PickArgs &args, PickScratch &scratch,
                                  f32 topP) {
  if (args.editCount != 0 || args.allowed) {
    scratch.edited.assign(row.begin(), row.end());
    for (u64 i = 0; i < args.editCount; ++i) {
      const PickEdit &edit = args.edits[i];
      f32 &logit = scratch.edited[u32(edit.token)];
      logit = kernels::applyEdit(edit, logit);
    }
    if (args.allowed)
      for (u64 i = 0; i < row.size(); ++i)
        if (!(args.allowed[i / 32] >> (i % 32) & 1))
          scratch.edited[i] = -infinity;
    row = scratch.edited;
  }
  RowMaximum maximum = rowMaximum(row);
  if (maximum.isBroken)
    return fail(ErrorKind::Internal,
                "the model's logits are not finite at position {}; its weights "
                "may be damaged (lathe verify)",
                args.position);
  if (maximum.value == -infinity)
    return fail(ErrorKind::InvalidInput, "no token is allowed at position {}",
                args.position);
  if (args.temperature == 0)
    return PickResult{i32(firstIndexOf(row, maximum.value)), maximum.value};

  if (args.topK == 0 && topP >= 1) {
    Best best = drawFromAll(row, maximum.value, args);
    return PickResult{i32(best.token), best.logit};
  }
  selectCandidates(row, maximum.value, args.topK, topP, scratch.candidates);
  Best best;
  for (const Candidate &candidate : scratch.candidates) {
    if (args.minP > 0 && candidate.logit != maximum.value &&
        contractExp(candidate.logit - maximum.value) < args.minP)
      continue;
    best.offer(f64(candidate.logit) / f64(args.temperature) +
                   noiseOf(args.seed, args.position, candidate.token),
               candidate.token, candidate.logit);
  }
  return PickResult{i32(best.token), best.logit};
}

} // namespace lathe::runtime

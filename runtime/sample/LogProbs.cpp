#include "runtime/sample/LogProbs.h"
#include "runtime/sample/LogitMath.h"
#include "runtime/sample/Noise.h"

#include <limits>

namespace lathe::runtime {

Result<LogProbs> LogProbs::of(std::span<const f32> row) {
  RowMaximum maximum = rowMaximum(row);
  if (maximum.isBroken ||
      maximum.value == -std::numeric_limits<f32>::infinity())
    return fail(ErrorKind::Internal,
                "the model's logits are not finite; its weights may be damaged "
                "(lathe verify)");
  LogProbs result;
  result.row = row;
  result.maximum = maximum.value;
  result.logSum = naturalLog(sumOfExp(row, maximum.value));
  return result;
}

std::vector<TokenLogProb> LogProbs::top(u32 count) const {
  std::vector<Candidate> candidates;
  selectTop(row, count, candidates);
  std::vector<TokenLogProb> result;
  result.reserve(candidates.size());
  for (const Candidate &candidate : candidates)
    result.push_back({i32(candidate.token), of(candidate.token)});
  return result;
}

} // namespace lathe::runtime

#include "runtime/schedule/ShareRows.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace lathe::runtime {

std::vector<u32> shareRows(u32 rows, std::span<const u32> wants) {
  std::vector<u32> order(wants.size()), shares(wants.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](u32 i) { return std::pair(wants[i], i); });
  for (size_t done = 0; done < order.size(); ++done) {
    u32 equal = rows / u32(order.size() - done);
    if (wants[order[done]] <= equal) {
      shares[order[done]] = wants[order[done]];
      rows -= wants[order[done]];
      continue;
    }
    // Nobody of the rest wants less than an equal share.
    for (u32 i : std::span(order).subspan(done)) {
      shares[i] = equal;
      rows -= equal;
    }
    break;
  }
  // What is left over, to the first who still want some.
  for (u32 i = 0; i < wants.size() && rows != 0; ++i) {
    u32 more = std::min(rows, wants[i] - shares[i]);
    shares[i] += more;
    rows -= more;
  }
  return shares;
}

} // namespace lathe::runtime

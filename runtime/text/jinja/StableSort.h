/// \file
/// A stable merge sort that stays within bounds whatever the comparison says
/// or throws: templates compare NaNs and values of mixed types.
#ifndef LATHE_RUNTIME_TEXT_JINJA_STABLESORT_H
#define LATHE_RUNTIME_TEXT_JINJA_STABLESORT_H

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace lathe::runtime::jinja {

/// The order of the indices [0, size) under less(i, j).
template <typename Less>
std::vector<size_t> stableOrder(size_t size, const Less &less) {
  std::vector<size_t> order(size), merged(size);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t width = 1; width < size; width *= 2) {
    for (size_t begin = 0; begin < size; begin += 2 * width) {
      size_t middle = std::min(begin + width, size);
      size_t end = std::min(middle + width, size);
      size_t left = begin, right = middle;
      for (size_t at = begin; at < end; ++at) {
        bool takeRight =
            right < end && (left == middle || less(order[right], order[left]));
        merged[at] = order[takeRight ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  return order;
}

} // namespace lathe::runtime::jinja

#endif // LATHE_RUNTIME_TEXT_JINJA_STABLESORT_H

/// \file
/// Overflow-checked arithmetic on sizes. Every size, count or offset that comes
/// from a file, an engine, a template or a request is computed with these.
#ifndef LATHE_RUNTIME_SUPPORT_CHECKED_H
#define LATHE_RUNTIME_SUPPORT_CHECKED_H

#include <concepts>
#include <cstdint>
#include <optional>

namespace lathe::runtime {

/// a + b, or nothing if it does not fit.
template <std::integral T> constexpr std::optional<T> checkedAdd(T a, T b) {
  T r;
  if (__builtin_add_overflow(a, b, &r))
    return std::nullopt;
  return r;
}

/// a * b, or nothing if it does not fit.
template <std::integral T> constexpr std::optional<T> checkedMul(T a, T b) {
  T r;
  if (__builtin_mul_overflow(a, b, &r))
    return std::nullopt;
  return r;
}

/// a rounded up to a multiple of `to` (> 0), or nothing if it does not fit.
constexpr std::optional<uint64_t> checkedAlign(uint64_t a, uint64_t to) {
  auto sum = checkedAdd<uint64_t>(a, to - 1);
  if (!sum)
    return std::nullopt;
  return *sum / to * to;
}

/// True if [offset, offset + size) lies inside [0, total).
constexpr bool rangeFits(uint64_t offset, uint64_t size, uint64_t total) {
  return offset <= total && size <= total - offset;
}

} // namespace lathe::runtime

#endif // LATHE_RUNTIME_SUPPORT_CHECKED_H

#include "codegen/WeightStore.h"

#include "mlir/IR/BuiltinAttributes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace lathe;
using runtime::ErrorKind;
using runtime::fail;
using runtime::Result;

Result<std::vector<float>>
codegen::makeRopeTable(mlir::DictionaryAttr params, int64_t positions,
                       int64_t pairs, std::span<const float> divisors) {
  auto number = [&](llvm::StringRef key, double fallback) {
    auto attr = params.getAs<mlir::FloatAttr>(key);
    return attr ? attr.getValueAsDouble() : fallback;
  };
  auto scalingAttr = params.getAs<mlir::StringAttr>("scaling");
  llvm::StringRef scaling = scalingAttr ? scalingAttr.getValue() : "none";
  if (scaling != "none" && scaling != "linear" && scaling != "yarn")
    return fail(ErrorKind::Unsupported, "RoPE scaling '{}' is not known",
                scaling.str());
  double base = number("base", 10000), factor = number("factor", 1);
  auto dims = static_cast<double>(2 * pairs);
  std::vector<double> frequency(static_cast<size_t>(pairs));
  for (int64_t i = 0; i < pairs; ++i)
    frequency[i] = std::pow(base, -2.0 * static_cast<double>(i) / dims) /
                   (divisors.empty() ? 1.0 : static_cast<double>(divisors[i]));

  double magnitude = number("attention_factor", 1);
  if (scaling == "linear") {
    for (double &f : frequency)
      f /= factor;
  } else if (scaling == "yarn") {
    // The pair whose wave turns `rotations` times over the original context.
    auto pairOf = [&](double rotations) {
      return dims *
             std::log(number("original_context", 1) /
                      (rotations * 2 * std::numbers::pi)) /
             (2 * std::log(base));
    };
    double low = std::max(0.0, std::floor(pairOf(number("beta_fast", 32))));
    double high = std::min(dims - 1, std::ceil(pairOf(number("beta_slow", 1))));
    double extrapolation = number("extrapolation", 1);
    for (int64_t i = 0; i < pairs; ++i) {
      double ramp =
          (static_cast<double>(i) - low) / std::max(0.001, high - low);
      // 1: keep the frequency (fast pairs); 0: interpolate it.
      double keep = (1 - std::clamp(ramp, 0.0, 1.0)) * extrapolation;
      frequency[i] = frequency[i] / factor * (1 - keep) + frequency[i] * keep;
    }
    if (extrapolation != 0 && factor > 1)
      magnitude *= 1 + 0.1 * std::log(factor);
  }

  std::vector<float> table(static_cast<size_t>(positions * pairs * 2));
  for (int64_t position = 0; position < positions; ++position)
    for (int64_t i = 0; i < pairs; ++i) {
      double angle = static_cast<double>(position) * frequency[i];
      size_t at = static_cast<size_t>((position * pairs + i) * 2);
      table[at] = static_cast<float>(std::cos(angle) * magnitude);
      table[at + 1] = static_cast<float>(std::sin(angle) * magnitude);
    }
  return table;
}

#include "ir/interpreter/Tensor.h"

#include <cmath>
#include <limits>

using namespace lathe::ir;

namespace {

size_t countOf(const Tensor::Shape &shape) {
  size_t count = 1;
  for (int64_t dim : shape)
    count *= static_cast<size_t>(dim);
  return count;
}

} // namespace

Tensor Tensor::floats(Shape shape) {
  std::vector<float> zeros(countOf(shape));
  return floats(std::move(shape), std::move(zeros));
}

Tensor Tensor::floats(Shape shape, std::vector<float> values) {
  Tensor tensor;
  tensor.dims = std::move(shape);
  tensor.data = std::move(values);
  return tensor;
}

Tensor Tensor::ints(Shape shape, std::vector<int32_t> values) {
  Tensor tensor;
  tensor.dims = std::move(shape);
  tensor.data = std::move(values);
  return tensor;
}

Tensor Tensor::blocks(Shape shape, std::vector<Q8Block> values) {
  Tensor tensor;
  tensor.dims = std::move(shape);
  tensor.data = std::move(values);
  return tensor;
}

int64_t Tensor::count() const { return static_cast<int64_t>(countOf(dims)); }

std::string Tensor::shapeText() const {
  std::string text;
  for (int64_t dim : dims)
    text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

std::vector<double> Tensor::numbers() const {
  if (isFloat())
    return {f32().begin(), f32().end()};
  if (isInt())
    return {i32().begin(), i32().end()};
  auto columns = static_cast<size_t>(dims.back());
  size_t rowBlocks = (columns + 31) / 32;
  std::vector<double> result;
  result.reserve(static_cast<size_t>(count()));
  for (size_t row = 0; rowBlocks > 0 && row < q8().size() / rowBlocks; ++row)
    for (size_t k = 0; k < columns; ++k) {
      const Q8Block &block = q8()[row * rowBlocks + k / 32];
      result.push_back(static_cast<double>(block.d) * block.q[k % 32]);
    }
  return result;
}

double lathe::ir::nmse(const Tensor &value, const Tensor &reference) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (value.shape() != reference.shape())
    return infinity;
  std::vector<double> a = value.numbers(), b = reference.numbers();
  double error = 0, power = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      if (a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i])))
        return infinity;
      continue;
    }
    error += (a[i] - b[i]) * (a[i] - b[i]);
    power += b[i] * b[i];
  }
  if (error == 0)
    return 0;
  return power == 0 ? infinity : error / power;
}

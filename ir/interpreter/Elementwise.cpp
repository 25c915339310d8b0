/// \file
/// Shapes, elementwise ops, norms, rotation and softmax.
#include "ir/interpreter/Frame.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;
using namespace lathe;
using namespace lathe::ir;

namespace {

template <typename Op, typename Function>
LogicalResult unary(Op op, Frame &frame, Function function) {
  Tensor y = frame[op.getInput()];
  for (float &value : y.f32())
    value = static_cast<float>(function(static_cast<double>(value)));
  return frame.set(op, op.getResult(), std::move(y));
}

template <typename Op, typename Function>
LogicalResult binary(Op op, Frame &frame, Function function) {
  const Tensor &a = frame[op.getLhs()], &b = frame[op.getRhs()];
  if (failed(require(op, a.shape() == b.shape(), "needs equal shapes", frame)))
    return failure();
  Tensor y = a;
  for (size_t i = 0; i < y.f32().size(); ++i)
    y.f32()[i] = static_cast<float>(function(static_cast<double>(a.f32()[i]),
                                             static_cast<double>(b.f32()[i])));
  return frame.set(op, op.getResult(), std::move(y));
}

/// Rows of the last dimension.
int64_t rowsOf(const Tensor &tensor) {
  return tensor.shape().back() == 0 ? 0
                                    : tensor.count() / tensor.shape().back();
}

} // namespace

LogicalResult lathe::ir::evaluate(ReshapeOp op, Frame &frame) {
  const Tensor &x = frame[op.getInput()];
  Tensor::Shape shape = cast<RankedTensorType>(op.getType()).getShape().vec();
  // Rows are kept; the other dimensions are static (verified).
  shape[0] = x.dim(0);
  Tensor y = Tensor::floats(shape, {x.f32().begin(), x.f32().end()});
  if (failed(require(op, y.count() == x.count(),
                     "needs as many values as it gives", frame)))
    return failure();
  return frame.set(op, op.getResult(), std::move(y));
}

LogicalResult lathe::ir::evaluate(TransposeOp op, Frame &frame) {
  const Tensor &x = frame[op.getInput()];
  int64_t a = x.dim(0), b = x.dim(1), d = x.dim(2);
  Tensor y = Tensor::floats({b, a, d});
  for (int64_t i = 0; i < a; ++i)
    for (int64_t j = 0; j < b; ++j)
      std::copy_n(x.f32().begin() + (i * b + j) * d, d,
                  y.f32().begin() + (j * a + i) * d);
  return frame.set(op, op.getResult(), std::move(y));
}

LogicalResult lathe::ir::evaluate(RepeatHeadsOp op, Frame &frame) {
  const Tensor &x = frame[op.getInput()];
  int64_t times = op.getTimes(), tokens = x.dim(0), heads = x.dim(1),
          d = x.dim(2);
  Tensor y = Tensor::floats({tokens, heads * times, d});
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < heads * times; ++h)
      std::copy_n(x.f32().begin() + (t * heads + h / times) * d, d,
                  y.f32().begin() + (t * heads * times + h) * d);
  return frame.set(op, op.getResult(), std::move(y));
}

LogicalResult lathe::ir::evaluate(AddOp op, Frame &frame) {
  return binary(op, frame, [](double a, double b) { return a + b; });
}

LogicalResult lathe::ir::evaluate(MulOp op, Frame &frame) {
  return binary(op, frame, [](double a, double b) { return a * b; });
}

LogicalResult lathe::ir::evaluate(SiluOp op, Frame &frame) {
  return unary(op, frame, [](double x) { return x / (1 + std::exp(-x)); });
}

LogicalResult lathe::ir::evaluate(GeluOp op, Frame &frame) {
  return unary(op, frame, [](double x) {
    return 0.5 * x *
           (1 + std::tanh(std::sqrt(2 / std::numbers::pi) *
                          (x + 0.044715 * x * x * x)));
  });
}

LogicalResult lathe::ir::evaluate(ScaleOp op, Frame &frame) {
  double factor = op.getFactor().convertToDouble();
  return unary(op, frame, [&](double x) { return x * factor; });
}

LogicalResult lathe::ir::evaluate(SoftcapOp op, Frame &frame) {
  double cap = op.getCap().convertToDouble();
  return unary(op, frame, [&](double x) { return cap * std::tanh(x / cap); });
}

LogicalResult lathe::ir::evaluate(RmsNormOp op, Frame &frame) {
  FailureOr<Tensor> weight = frame.table(op, op.getWeightAttr());
  if (failed(weight))
    return failure();
  Tensor y = frame[op.getInput()];
  int64_t k = y.shape().back();
  if (failed(require(op, weight->count() == k,
                     "needs rows of " + Twine(weight->count()), frame)))
    return failure();
  double epsilon = op.getEpsilon().convertToDouble();
  for (int64_t row = 0; row < rowsOf(y); ++row) {
    std::span<float> x =
        y.f32().subspan(static_cast<size_t>(row * k), static_cast<size_t>(k));
    double squares = 0;
    for (float value : x)
      squares += static_cast<double>(value) * value;
    double r = 1 / std::sqrt(squares / static_cast<double>(k) + epsilon);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(x[i] * r * weight->f32()[i]);
  }
  return frame.set(op, op.getResult(), std::move(y));
}

LogicalResult lathe::ir::evaluate(RopeOp op, Frame &frame) {
  FailureOr<Tensor> table = frame.table(op, op.getTableAttr());
  if (failed(table))
    return failure();
  const Tensor &positions = frame[op.getPositions()];
  Tensor y = frame[op.getInput()];
  int64_t tokens = y.dim(0), heads = y.dim(1), d = y.dim(2);
  int64_t context = table->dim(0), pairs = table->dim(1);
  if (failed(require(op, positions.dim(0) == tokens && 2 * pairs <= d,
                     "needs one position per row and " + Twine(2 * pairs) +
                         " values a head",
                     frame)))
    return failure();
  bool adjacent = op.getStyle() == RopeStyle::Adjacent;
  for (int64_t t = 0; t < tokens; ++t) {
    int64_t position = positions.i32()[static_cast<size_t>(t)];
    if (position < 0 || position >= context)
      return op.emitOpError("gets position ")
             << position << ", outside of a table of " << context;
    for (int64_t h = 0; h < heads; ++h) {
      std::span<float> head = y.f32().subspan(
          static_cast<size_t>((t * heads + h) * d), static_cast<size_t>(d));
      for (int64_t i = 0; i < pairs; ++i) {
        auto entry = static_cast<size_t>((position * pairs + i) * 2);
        double c = table->f32()[entry], s = table->f32()[entry + 1];
        float &x0 = head[static_cast<size_t>(adjacent ? 2 * i : i)];
        float &x1 = head[static_cast<size_t>(adjacent ? 2 * i + 1 : i + pairs)];
        double a = x0, b = x1;
        x0 = static_cast<float>(a * c - b * s);
        x1 = static_cast<float>(b * c + a * s);
      }
    }
  }
  return frame.set(op, op.getResult(), std::move(y));
}

LogicalResult lathe::ir::evaluate(MaskOp op, Frame &frame) {
  const Tensor &positions = frame[op.getPositions()];
  Tensor y = frame[op.getInput()];
  int64_t heads = y.dim(0), rows = y.dim(1), keys = y.dim(2);
  if (failed(require(op, positions.dim(0) == rows && rows == keys,
                     "needs one position per row and per key", frame)))
    return failure();
  std::span<const int32_t> at = positions.i32();
  int64_t window = op.getWindow();
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t t = 0; t < rows; ++t)
      for (int64_t s = 0; s < keys; ++s) {
        int64_t distance = static_cast<int64_t>(at[static_cast<size_t>(t)]) -
                           at[static_cast<size_t>(s)];
        if (distance < 0 || (window > 0 && distance >= window))
          y.f32()[static_cast<size_t>((h * rows + t) * keys + s)] =
              -std::numeric_limits<float>::infinity();
      }
  return frame.set(op, op.getResult(), std::move(y));
}

LogicalResult lathe::ir::evaluate(SoftmaxOp op, Frame &frame) {
  Tensor y = frame[op.getInput()];
  int64_t k = y.shape().back();
  for (int64_t row = 0; row < rowsOf(y); ++row) {
    std::span<float> x =
        y.f32().subspan(static_cast<size_t>(row * k), static_cast<size_t>(k));
    double largest = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (float value : x)
      sum += std::exp(value - largest);
    for (float &value : x)
      value = static_cast<float>(std::exp(value - largest) / sum);
  }
  return frame.set(op, op.getResult(), std::move(y));
}

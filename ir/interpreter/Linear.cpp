/// \file
/// Embedding, linears, products, and the quantization of their inputs.
#include "ir/interpreter/Frame.h"
#include "kernels/formats/Dequantize.h"

#include "mlir/IR/Threading.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace lathe;
using namespace lathe::ir;

namespace {

/// The values of row `n`.
void decodeRow(const Matrix &matrix, int64_t n, std::vector<float> &into) {
  into.resize(static_cast<size_t>(matrix.k));
  kernels::dequantizeRow(matrix.format, matrix.rows[static_cast<size_t>(n)],
                         into.data(), matrix.k);
}

/// numerics.md, "Activation blocks", step by step in f32.
Q8Block quantize(std::span<const float> x) {
  uint32_t bits = 0;
  for (float value : x)
    bits = std::max(bits, std::bit_cast<uint32_t>(value) & 0x7fffffffu);
  auto amax = std::bit_cast<float>(bits);
  Q8Block block;
  if (!std::isfinite(amax)) {
    block.d = std::numeric_limits<float>::quiet_NaN();
  } else if (amax >= 0x1p-100f) {
    block.d = amax / 127.0f;
    float s = 127.0f / amax;
    for (size_t i = 0; i < x.size(); ++i)
      block.q[i] = static_cast<int8_t>(std::nearbyint(x[i] * s));
  }
  return block;
}

/// input · weightᵀ + bias. Block by block the products of integers are exact in
/// f64; what is left is one rounding at the end.
LogicalResult linear(Operation *op, Value input, FlatSymbolRefAttr weight,
                     FlatSymbolRefAttr bias, Value result, Frame &frame) {
  FailureOr<Matrix> matrix = frame.matrix(op, weight);
  if (failed(matrix))
    return failure();
  const Tensor &x = frame[input];
  if (failed(require(op, x.rank() == 2 && x.dim(1) == matrix->k,
                     "needs rows of " + Twine(matrix->k), frame)))
    return failure();
  std::vector<float> addend(static_cast<size_t>(matrix->n));
  if (bias) {
    FailureOr<Tensor> values = frame.table(op, bias);
    if (failed(values))
      return failure();
    if (values->count() != matrix->n)
      return op->emitOpError("has a bias of ") << values->count() << " values";
    std::copy(values->f32().begin(), values->f32().end(), addend.begin());
  }
  std::vector<double> numbers = x.numbers();
  int64_t tokens = x.dim(0), k = matrix->k, n = matrix->n;
  Tensor y = Tensor::floats({tokens, n});
  std::span<float> out = y.f32();
  constexpr int64_t rowsPerTask = 64;
  parallelFor(
      op->getContext(), 0,
      static_cast<size_t>((n + rowsPerTask - 1) / rowsPerTask),
      [&](size_t task) {
        std::vector<float> w;
        int64_t first = static_cast<int64_t>(task) * rowsPerTask;
        for (int64_t row = first; row < std::min(n, first + rowsPerTask);
             ++row) {
          decodeRow(*matrix, row, w);
          for (int64_t t = 0; t < tokens; ++t) {
            const double *xt = numbers.data() + t * k;
            double sum = addend[static_cast<size_t>(row)];
            for (int64_t i = 0; i < k; ++i)
              sum += static_cast<double>(w[static_cast<size_t>(i)]) * xt[i];
            out[static_cast<size_t>(t * n + row)] = static_cast<float>(sum);
          }
        }
      });
  return frame.set(op, result, std::move(y));
}

} // namespace

LogicalResult lathe::ir::evaluate(EmbedOp op, Frame &frame) {
  FailureOr<Matrix> matrix = frame.matrix(op, op.getWeightAttr());
  if (failed(matrix))
    return failure();
  const Tensor &tokens = frame[op.getTokens()];
  std::vector<float> values, row;
  for (int32_t token : tokens.i32()) {
    if (token < 0 || token >= matrix->n)
      return op.emitOpError("gets token ")
             << token << ", outside of a vocabulary of " << matrix->n;
    decodeRow(*matrix, token, row);
    values.insert(values.end(), row.begin(), row.end());
  }
  return frame.set(
      op, op.getResult(),
      Tensor::floats({tokens.dim(0), matrix->k}, std::move(values)));
}

LogicalResult lathe::ir::evaluate(PositionsOp op, Frame &frame) {
  const Tensor &tokens = frame[op.getTokens()];
  std::vector<int32_t> positions;
  if (const std::vector<StepRow> *rows = frame.stepRows()) {
    if (failed(require(op, static_cast<int64_t>(rows->size()) == tokens.dim(0),
                       "needs one token per row of the step", frame)))
      return failure();
    for (const StepRow &row : *rows)
      positions.push_back(row.position);
  } else {
    for (int64_t t = 0; t < tokens.dim(0); ++t)
      positions.push_back(static_cast<int32_t>(t));
  }
  return frame.set(op, op.getResult(),
                   Tensor::ints({tokens.dim(0)}, std::move(positions)));
}

LogicalResult lathe::ir::evaluate(LinearOp op, Frame &frame) {
  return linear(op, op.getInput(), op.getWeightAttr(), op.getBiasAttr(),
                op.getResult(), frame);
}

LogicalResult lathe::ir::evaluate(MergedLinearOp op, Frame &frame) {
  for (auto [index, weight] : llvm::enumerate(op.getWeights())) {
    FlatSymbolRefAttr bias;
    if (op.getBiases())
      bias = dyn_cast<FlatSymbolRefAttr>((*op.getBiases())[index]);
    if (failed(linear(op, op.getInput(), cast<FlatSymbolRefAttr>(weight), bias,
                      op.getResult(static_cast<unsigned>(index)), frame)))
      return failure();
  }
  return success();
}

LogicalResult lathe::ir::evaluate(MatmulOp op, Frame &frame) {
  const Tensor &a = frame[op.getLhs()], &b = frame[op.getRhs()];
  bool transposed = op.getTransposeB();
  size_t inner = transposed ? 2 : 1, outer = transposed ? 1 : 2;
  if (failed(require(op, a.dim(0) == b.dim(0) && a.dim(2) == b.dim(inner),
                     "needs equal batches and inner dimensions", frame)))
    return failure();
  int64_t batch = a.dim(0), m = a.dim(1), n = b.dim(outer), k = a.dim(2);
  Tensor c = Tensor::floats({batch, m, n});
  for (int64_t h = 0; h < batch; ++h)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          int64_t at = transposed ? (h * n + j) * k + p : (h * k + p) * n + j;
          sum += static_cast<double>(
                     a.f32()[static_cast<size_t>((h * m + i) * k + p)]) *
                 b.f32()[static_cast<size_t>(at)];
        }
        c.f32()[static_cast<size_t>((h * m + i) * n + j)] =
            static_cast<float>(sum);
      }
  return frame.set(op, op.getResult(), std::move(c));
}

LogicalResult lathe::ir::evaluate(QuantizeRowsOp op, Frame &frame) {
  const Tensor &x = frame[op.getInput()];
  auto columns = static_cast<size_t>(x.dim(1));
  std::vector<Q8Block> blocks;
  for (size_t row = 0; row < static_cast<size_t>(x.dim(0)); ++row)
    for (size_t k = 0; k < columns; k += 32)
      blocks.push_back(quantize(x.f32().subspan(
          row * columns + k, std::min<size_t>(32, columns - k))));
  return frame.set(op, op.getResult(),
                   Tensor::blocks(x.shape(), std::move(blocks)));
}

/// \file
/// What the interpreter computes with: a shape and its values, nothing lazy.
#ifndef LATHE_IR_INTERPRETER_TENSOR_H
#define LATHE_IR_INTERPRETER_TENSOR_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace lathe::ir {

/// 32 values of one row as numerics.md, "Activation blocks", stores them; the
/// lane sums follow from q.
struct Q8Block {
  float d = 0;
  std::array<int8_t, 32> q = {};
};

/// A dense tensor in row-major order. Elements are f32, i32 (token ids,
/// positions), or int8 blocks: then `q8()` holds, per row, ceil(columns / 32)
/// blocks.
class Tensor {
public:
  using Shape = std::vector<int64_t>;

  Tensor() = default;
  /// Zeros.
  static Tensor floats(Shape shape);
  static Tensor floats(Shape shape, std::vector<float> values);
  static Tensor ints(Shape shape, std::vector<int32_t> values);
  static Tensor blocks(Shape shape, std::vector<Q8Block> values);

  const Shape &shape() const { return dims; }
  int64_t dim(size_t index) const { return dims[index]; }
  size_t rank() const { return dims.size(); }
  /// Elements in all.
  int64_t count() const;
  /// "4x576", for messages.
  std::string shapeText() const;

  bool isFloat() const { return std::holds_alternative<Floats>(data); }
  bool isInt() const { return std::holds_alternative<Ints>(data); }
  bool isQ8() const { return std::holds_alternative<Blocks>(data); }

  /// The elements; the tensor must hold the kind.
  std::span<float> f32() { return std::get<Floats>(data); }
  std::span<const float> f32() const { return std::get<Floats>(data); }
  std::span<const int32_t> i32() const { return std::get<Ints>(data); }
  std::span<const Q8Block> q8() const { return std::get<Blocks>(data); }

  /// The elements of any kind as numbers; of int8 blocks d·q.
  std::vector<double> numbers() const;

private:
  using Floats = std::vector<float>;
  using Ints = std::vector<int32_t>;
  using Blocks = std::vector<Q8Block>;

  Shape dims;
  std::variant<Floats, Ints, Blocks> data;
};

/// Σ (value − reference)² / Σ reference²: 0 for equal tensors (also of zeros),
/// infinite if the shapes differ or a value is not finite where the other is.
/// Infinities and NaNs at the same places count as equal.
double nmse(const Tensor &value, const Tensor &reference);

} // namespace lathe::ir

#endif // LATHE_IR_INTERPRETER_TENSOR_H

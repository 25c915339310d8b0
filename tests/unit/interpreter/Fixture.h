/// \file
/// Modules to interpret: text with given values, and seeded models.
#ifndef LATHE_TESTS_UNIT_INTERPRETER_FIXTURE_H
#define LATHE_TESTS_UNIT_INTERPRETER_FIXTURE_H

#include "codegen/WeightStore.h"
#include "frontend/gguf/GgufFile.h"
#include "ir/interpreter/Interpreter.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lathe::tests {

/// Weights by symbol: f32 values of vectors and of f32 matrices, or the bytes
/// of other matrices.
class GivenWeights : public ir::WeightProvider {
public:
  std::map<std::string, std::vector<float>> floats;
  std::map<std::string, std::vector<uint8_t>> bytes;

  runtime::Result<std::vector<const uint8_t *>>
  rows(ir::WeightOp weight) override;
  runtime::Result<std::vector<float>> values(ir::WeightOp weight) override;
};

/// A context with all dialects that collects diagnostics.
class InterpreterTest : public testing::Test {
protected:
  InterpreterTest();

  /// Parses a module; fails the test if that is not possible.
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text);

  /// Runs one pass; fails the test if it fails.
  void runPass(mlir::ModuleOp module, std::unique_ptr<mlir::Pass> pass);

  mlir::MLIRContext context;
  GivenWeights weights;
  /// What was reported, joined by newlines.
  std::string messages;
};

/// A model of tests/golden/seeded.
struct SeededModel {
  std::unique_ptr<frontend::GgufFile> file;
  std::unique_ptr<ir::WeightProvider> weights;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Loads a seeded model by name; fails the test if that is not possible.
SeededModel loadSeeded(mlir::MLIRContext &context, const std::string &name);

/// `count` token ids, the same ones each time, below 512.
std::vector<int32_t> someTokens(size_t count);

/// Hidden rows of @body in sequence form, then their logits from @head.
struct Answer {
  ir::Tensor hidden, logits;
};
std::optional<Answer> runSequence(ir::Interpreter &interpreter,
                                  const std::vector<int32_t> &tokens);

/// The same in step form, in steps of the given numbers of tokens.
std::optional<Answer> runSteps(ir::Interpreter &interpreter,
                               const std::vector<int32_t> &tokens,
                               const std::vector<size_t> &chunks);

} // namespace lathe::tests

#endif // LATHE_TESTS_UNIT_INTERPRETER_FIXTURE_H

#include "tests/unit/interpreter/Fixture.h"

#include "codegen/StoredWeights.h"
#include "frontend/models/Models.h"
#include "passes/Passes.h"
#include "tests/unit/formats/SplitMix64.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cstdlib>

using namespace lathe;
using namespace lathe::tests;
using lathe::ir::Tensor;

runtime::Result<std::vector<const uint8_t *>>
GivenWeights::rows(ir::WeightOp weight) {
  std::string name = weight.getSymName().str();
  const uint8_t *data = nullptr;
  size_t size = 0;
  if (auto found = bytes.find(name); found != bytes.end()) {
    data = found->second.data();
    size = found->second.size();
  } else if (auto values = floats.find(name); values != floats.end()) {
    data = reinterpret_cast<const uint8_t *>(values->second.data());
    size = values->second.size() * sizeof(float);
  } else {
    return runtime::fail(runtime::ErrorKind::NotFound, "no '{}' given", name);
  }
  auto count = static_cast<size_t>(weight.getTensorType().getDimSize(0));
  std::vector<const uint8_t *> rows;
  for (size_t row = 0; row < count; ++row)
    rows.push_back(data + row * (size / count));
  return rows;
}

runtime::Result<std::vector<float>> GivenWeights::values(ir::WeightOp weight) {
  auto found = floats.find(weight.getSymName().str());
  if (found == floats.end())
    return runtime::fail(runtime::ErrorKind::NotFound, "no '{}' given",
                         weight.getSymName().str());
  return found->second;
}

InterpreterTest::InterpreterTest() {
  mlir::DialectRegistry registry;
  passes::registerDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
    messages += diagnostic.str() + "\n";
    return mlir::success();
  });
}

mlir::OwningOpRef<mlir::ModuleOp>
InterpreterTest::parse(const std::string &text) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_TRUE(module) << messages;
  return module;
}

void InterpreterTest::runPass(mlir::ModuleOp module,
                              std::unique_ptr<mlir::Pass> pass) {
  mlir::PassManager manager(&context);
  manager.addPass(std::move(pass));
  EXPECT_TRUE(mlir::succeeded(manager.run(module))) << messages;
}

SeededModel tests::loadSeeded(mlir::MLIRContext &context,
                              const std::string &name) {
  SeededModel model;
  const char *folder = std::getenv("LATHE_SEEDED_MODELS");
  auto file = frontend::GgufFile::open(std::string(folder ? folder : ".") +
                                       "/" + name + ".gguf");
  if (!file) {
    ADD_FAILURE() << file.error().message;
    return model;
  }
  model.file = std::make_unique<frontend::GgufFile>(std::move(*file));
  auto module = frontend::importGguf(context, *model.file);
  if (!module) {
    ADD_FAILURE() << module.error().message;
    return model;
  }
  model.module = std::move(*module);
  std::vector<std::span<const uint8_t>> bytes;
  for (uint32_t shard = 0; shard < model.file->shardCount(); ++shard)
    bytes.push_back(model.file->shardBytes(shard));
  model.weights =
      std::make_unique<codegen::StoredWeights>(codegen::WeightStore(bytes));
  return model;
}

std::vector<int32_t> tests::someTokens(size_t count) {
  SplitMix64 stream(42);
  std::vector<int32_t> tokens(count);
  for (int32_t &token : tokens)
    token = static_cast<int32_t>(stream.next() % 512);
  return tokens;
}

static std::optional<Tensor>
only(mlir::FailureOr<std::vector<Tensor>> results) {
  if (mlir::failed(results) || results->size() != 1) {
    ADD_FAILURE() << "not one result";
    return std::nullopt;
  }
  return std::move(results->front());
}

std::optional<Answer> tests::runSequence(ir::Interpreter &interpreter,
                                         const std::vector<int32_t> &tokens) {
  auto hidden = only(interpreter.run(
      "body", {Tensor::ints({static_cast<int64_t>(tokens.size())}, tokens)}));
  if (!hidden)
    return std::nullopt;
  auto logits = only(interpreter.run("head", {*hidden}));
  if (!logits)
    return std::nullopt;
  return Answer{std::move(*hidden), std::move(*logits)};
}

std::optional<Answer> tests::runSteps(ir::Interpreter &interpreter,
                                      const std::vector<int32_t> &tokens,
                                      const std::vector<size_t> &chunks) {
  ir::KvStore store;
  std::vector<float> rows;
  size_t start = 0;
  for (size_t chunk : chunks) {
    std::vector<int32_t> part(tokens.begin() + static_cast<long>(start),
                              tokens.begin() +
                                  static_cast<long>(start + chunk));
    std::vector<ir::StepRow> stepRows;
    for (size_t i = 0; i < chunk; ++i)
      stepRows.push_back({0, static_cast<int32_t>(start + i)});
    auto hidden = only(interpreter.runStep(
        "body", {Tensor::ints({static_cast<int64_t>(chunk)}, part)}, stepRows,
        store));
    if (!hidden)
      return std::nullopt;
    rows.insert(rows.end(), hidden->f32().begin(), hidden->f32().end());
    start += chunk;
  }
  auto count = static_cast<int64_t>(start);
  auto width = static_cast<int64_t>(rows.size()) / count;
  Tensor hidden = Tensor::floats({count, width}, std::move(rows));
  auto logits = only(interpreter.run("head", {hidden}));
  if (!logits)
    return std::nullopt;
  return Answer{std::move(hidden), std::move(*logits)};
}

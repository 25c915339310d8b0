/// \file
/// lathe plan: what a model takes, from its header alone.

#include "runtime/device/CpuBudget.h"
#include "runtime/device/MachineLimits.h"
#include "runtime/engine/Validate.h"
#include "runtime/schedule/LoadedEngine.h"
#include "runtime/schedule/ServingEngine.h"
#include "tools/lathe/Checks.h"
#include "tools/lathe/Command.h"
#include "tools/lathe/CompilerLibrary.h"
#include "tools/lathe/Places.h"
#include "tools/lathe/PlanReport.h"
#include "tools/lathe/Terminal.h"

#include <algorithm>
#include <array>
#include <memory>
#include <spdlog/spdlog.h>

using namespace lathe;
using namespace lathe::tools;
using runtime::MemoryPlan;
using runtime::StepProgram;

namespace {

struct Device {
  const char *name;
  f64 memory;    ///< Bytes, as it is sold.
  f64 bandwidth; ///< Bytes per second, by the maker's data sheet.
};

constexpr std::array<Device, 3> devices = {{
    {"a100-80g", 80e9, 2.0e12},
    {"h100", 80e9, 3.35e12},
    {"h200", 141e9, 4.8e12},
}};
constexpr const char *asIs = "as-is";

struct Options {
  std::string model;
  std::string preset;
  std::string device;
  u64 memory = 0;
  /// Those of a server that is not told otherwise.
  runtime::MemoryWishes wishes = {
      .requests = runtime::ServingOptions().maxRunning,
      .stepRows = runtime::ServingOptions().stepRows};
  std::string kvDtype;
  std::string weights = asIs;
  u32 threads = 0;
  bool json = false;
};

/// A model, and its program where there is one.
struct Input {
  ModelSizes sizes;
  std::string source;
  std::string kvDtype = "f16"; ///< Unless another is asked for.
  std::optional<StepProgram> program = {};
  /// Of weights, as an engine holds them.
  std::optional<u64> engineBytes = {};
};

Result<Input> readGguf(const std::string &path) {
  auto file = frontend::GgufFile::open(path);
  if (!file)
    return failFrom(file);
  auto sizes = sizesOfGguf(*file);
  if (!sizes)
    return failFrom(sizes);
  Input input{.sizes = std::move(*sizes), .source = "gguf"};
  auto compiler = loadCompiler();
  if (!compiler && compiler.error().kind == ErrorKind::NotFound)
    return input;
  if (!compiler)
    return failFrom(compiler);
  auto measured = (*compiler)->measure(path, {});
  if (!measured)
    return failFrom(measured);
  input.program = std::move(measured->program);
  input.engineBytes = measured->weightBytes;
  return input;
}

Result<Input> readEngine(const std::string &path) {
  auto engine = runtime::Engine::open(path);
  if (!engine)
    return failFrom(engine);
  const auto &manifest = (*engine)->manifest();
  Input input{.sizes = sizesOfEngine(**engine), .source = "engine"};
  if (manifest.kv_groups() && manifest.kv_groups()->size() != 0)
    input.kvDtype = runtime::viewOf((*manifest.kv_groups())[0]->dtype());
  // All targets of one compilation share a plan.
  input.program = runtime::sizesOf(manifest, *(*manifest.programs())[0]);
  input.engineBytes = (*engine)->weights().size();
  return input;
}

Result<Input> readInput(const Options &options) {
  Result<ModelSizes> sizes;
  if (!options.preset.empty()) {
    sizes = sizesOfPreset(options.preset);
  } else {
    auto path = findModel(options.model);
    if (!path)
      return failFrom(path);
    auto kind = kindOf(*path);
    if (!kind)
      return failFrom(kind);
    if (*kind == FileKind::Gguf)
      return readGguf(*path);
    if (*kind == FileKind::Engine)
      return readEngine(*path);
    sizes = sizesOfConfig(*path);
  }
  if (!sizes)
    return failFrom(sizes);
  return Input{.sizes = std::move(*sizes),
               .source = options.preset.empty() ? "config" : "preset"};
}

/// Sets what the weights take, as they are or as --weights has them.
void planWeights(const Options &options, const Input &input,
                 PlanReport &report) {
  report.precision = options.weights;
  report.weightBytes = input.engineBytes.value_or(input.sizes.weightBytes);
  report.weightBytesRead = input.sizes.weightBytes - input.sizes.gatheredBytes;
  const runtime::ModelShape &shape = input.sizes.shape;
  for (const auto &precision : runtime::weightPrecisions())
    if (precision.name == options.weights) {
      report.weightBytes =
          runtime::bytesOfWeights(shape.parameters, precision.formatBits);
      report.weightBytesRead = runtime::bytesOfWeights(
          shape.parameters - shape.gatheredParameters, precision.formatBits);
    }
}

/// The program whose buffers and KV groups are planned for.
StepProgram programFor(const Options &options, const Input &input,
                       const std::string &kvDtype) {
  bool quantized = options.weights == asIs ? input.sizes.quantized
                                           : options.weights.starts_with("int");
  StepProgram sketch =
      runtime::sketchProgram(input.sizes.shape, kvDtype, quantized);
  if (!input.program)
    return sketch;
  StepProgram program = *input.program;
  if (kvDtype != input.kvDtype)
    program.groups = std::move(sketch.groups);
  return program;
}

Result<MemoryPlan> settle(const Options &options, const StepProgram &program,
                          u32 threads, const runtime::MemoryWishes &wishes) {
  const auto *device =
      std::ranges::find(devices, options.device, &Device::name);
  if (device == devices.end() && options.memory == 0)
    return MemoryPlan::settleHere(program, threads, wishes, 0);
  runtime::MemoryLimit limit;
  limit.countsWeights = true;
  if (options.memory != 0) {
    limit.budget = {options.memory, "--memory"};
    limit.option = "--memory";
  } else {
    limit.budget = {u64(device->memory), device->name};
  }
  return MemoryPlan::settle(program, threads, wishes, {&limit, 1});
}

/// The bandwidths to tell: the device's, or all known ones.
Result<std::vector<DeviceBandwidth>> bandwidthsFor(const Options &options,
                                                   u32 threads) {
  std::vector<DeviceBandwidth> result;
  if (options.device == "cpu") {
    auto measured = runtime::measureBandwidth(threads);
    if (!measured)
      return failFrom(measured);
    result.push_back({"cpu", *measured});
  }
  for (const Device &device : devices)
    if (options.device.empty() || options.device == device.name)
      result.push_back({device.name, device.bandwidth});
  return result;
}

Result<int> plan(const Options &options) {
  if (options.model.empty() == options.preset.empty())
    throw UsageError(options.model.empty() ? "MODEL or --preset is required"
                                           : "MODEL and --preset exclude each "
                                             "other");
  auto input = readInput(options);
  if (!input)
    return failFrom(input);
  PlanReport report;
  report.source = input->source;
  report.kvDtype = options.kvDtype.empty() ? input->kvDtype : options.kvDtype;
  planWeights(options, *input, report);
  StepProgram program = programFor(options, *input, report.kvDtype);
  report.exactArena = input->program && options.weights == asIs;
  report.model = std::move(input->sizes);
  report.context =
      options.wishes.context ? options.wishes.context : program.context;
  report.memoryName = options.memory != 0 ? "--memory"
                      : options.device.empty() || options.device == "cpu"
                          ? "this machine"
                          : options.device;
  report.memoryIsAsked = options.memory != 0 || !options.device.empty();
  u32 threads =
      options.threads ? options.threads : runtime::CpuBudget::detect().threads;
  runtime::MemoryWishes wishes = options.wishes;
  wishes.weightBytes = report.weightBytes;
  auto settled = settle(options, program, threads, wishes);
  if (settled)
    report.plan = std::move(*settled);
  else if (settled.error().kind == ErrorKind::Exhausted)
    report.misfit = settled.error().message;
  else
    return failFrom(settled);
  auto bandwidths = bandwidthsFor(options, threads);
  if (!bandwidths)
    return failFrom(bandwidths);
  report.devices = std::move(*bandwidths);
  if (options.json)
    printJson(report.json());
  else
    report.print();
  if (settled || !report.memoryIsAsked)
    return exitDone;
  return failFrom(settled);
}

} // namespace

void tools::addPlan(const CommandLine &line) {
  auto options = std::make_shared<Options>();
  CLI::App *command = line.add(
      "plan", "Tell what memory a model takes, from its header alone",
      "  lathe plan model.gguf --memory 8G --requests 4\n"
      "  lathe plan --preset llama-2-70b --device a100-80g --weights int4\n"
      "  lathe plan config.json --context 4096 --json");
  command->add_option("MODEL", options->model,
                      "A GGUF model, an engine, a config.json as Hugging Face "
                      "has it, or a local model's name");
  command->add_option("--preset", options->preset,
                      "A well-known model's sizes instead, such as "
                      "llama-3.1-8b; an unknown name lists all");
  CLI::Option *device =
      command
          ->add_option("--device", options->device,
                       "Plan for its memory and bandwidth: a100-80g, h100, "
                       "h200 or cpu, which is this machine, measured")
          ->check(CLI::IsMember({"a100-80g", "h100", "h200", "cpu"}));
  command
      ->add_option("--memory", options->memory,
                   "Plan for so many bytes of weights, buffers and KV cache, "
                   "such as 8G (default: what is available here)")
      ->transform(byteCount())
      ->excludes(device);
  command
      ->add_option("--context", options->wishes.context,
                   "Most tokens of a request (default: the model's, or what "
                   "the memory holds)")
      ->check(wholeNumber(1, contextMax));
  command
      ->add_option("--requests", options->wishes.requests,
                   "Most requests that run together")
      ->check(wholeNumber(1, MemoryPlan::mostRequests))
      ->capture_default_str();
  command->add_option("--chunk", options->wishes.stepRows, "Rows of a step")
      ->check(wholeNumber(1, chunkMax))
      ->capture_default_str();
  std::span<const std::string_view> dtypes = runtime::kvDtypes();
  command
      ->add_option("--kv-dtype", options->kvDtype,
                   "Elements of the KV cache: f32, f16, bf16 or int8 (default: "
                   "the engine's, else f16)")
      ->check(CLI::IsMember(
          std::vector<std::string>(dtypes.begin(), dtypes.end())));
  command
      ->add_option("--weights", options->weights,
                   "Plan for weights of this precision: as-is, fp32, fp16, "
                   "int8 or int4")
      ->check(CLI::IsMember({asIs, "fp32", "fp16", "int8", "int4"}))
      ->capture_default_str();
  addThreads(*command, options->threads);
  command->add_flag("--json", options->json, "Print it as JSON");
  line.onGiven(command, [options] { return plan(*options); });
}
